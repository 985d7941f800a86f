# hs_library(NAME SOURCES ... LINKS ... [TORCH]): headshare::NAME, one static library per folder.
# LINKS names the folders of lower rank (and outside libraries) it may use. Header-only folders
# list their headers.
function(hs_library name)
  cmake_parse_arguments(arg "TORCH" "" "SOURCES;LINKS" ${ARGN})
  add_library(headshare_${name} STATIC ${arg_SOURCES})
  add_library(headshare::${name} ALIAS headshare_${name})
  set_target_properties(headshare_${name} PROPERTIES EXPORT_NAME ${name} LINKER_LANGUAGE CXX)
  target_link_libraries(headshare_${name} PUBLIC headshare_options ${arg_LINKS}
                        PRIVATE $<BUILD_INTERFACE:headshare_warnings>)
  hs_use_torch(headshare_${name} "${arg_TORCH}")
  set_property(GLOBAL APPEND PROPERTY HEADSHARE_LIBRARIES headshare_${name})
endfunction()

# hs_test(FOLDER SOURCES ... [LINKS ...] [TORCH]): the folder's unit tests as one program.
function(hs_test name)
  if(NOT HEADSHARE_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "TORCH" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name}_test ${arg_SOURCES})
  target_link_libraries(${name}_test PRIVATE headshare::${name} ${arg_LINKS} GTest::gmock GTest::gtest_main
                        headshare_warnings)
  hs_use_torch(${name}_test "${arg_TORCH}")
  target_compile_definitions(${name}_test PRIVATE HEADSHARE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name}_test --gtest_brief=1 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endfunction()

function(hs_use_torch target wanted)
  if(wanted)
    target_link_libraries(${target} PUBLIC headshare::torch)
    target_precompile_headers(${target} REUSE_FROM headshare_torch_pch)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      # The header was compiled with -fPIC; with CMake's -fPIE for programs g++ would read it anew.
      set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
  endif()
endfunction()

# One precompiled header for everything that includes libtorch: 20 s a file become 5 s.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/torch_pch.cc CONTENT "")
add_library(headshare_torch_pch OBJECT ${CMAKE_BINARY_DIR}/torch_pch.cc)
target_link_libraries(headshare_torch_pch PRIVATE headshare_options headshare_warnings headshare::torch
                      nlohmann_json::nlohmann_json fmt::fmt)
target_precompile_headers(headshare_torch_pch PRIVATE
  <torch/nn/module.h> <torch/nn/cloneable.h> <torch/autograd.h> <ATen/ATen.h> <nlohmann/json.hpp>
  <functional> <map> <memory> <optional> <string> <vector>)
