# hs_library(NAME SOURCES ... LINKS ... [TORCH] [ALONE ...]) declares headshare::NAME, one static library per folder.
# LINKS names the folders of lower rank (and outside libraries) it may use. ALONE names sources that are never compiled
# together with others. Header-only folders list their headers.
function(hs_library name)
  cmake_parse_arguments(arg "TORCH" "" "SOURCES;LINKS;ALONE" ${ARGN})
  add_library(headshare_${name} STATIC ${arg_SOURCES})
  add_library(headshare::${name} ALIAS headshare_${name})
  set_target_properties(headshare_${name} PROPERTIES EXPORT_NAME ${name} LINKER_LANGUAGE CXX)
  target_link_libraries(headshare_${name} PUBLIC headshare_options ${arg_LINKS}
                        PRIVATE $<BUILD_INTERFACE:headshare_warnings>)
  hs_precompiled(headshare_${name} "${arg_TORCH}")
  hs_in_groups(headshare_${name} 18 "${arg_ALONE}")
  set_property(GLOBAL APPEND PROPERTY HEADSHARE_LIBRARIES headshare_${name})
endfunction()

# hs_test(FOLDER SOURCES ... [LINKS ...] [TORCH] [THREADS] [ALONE ...]) declares the folder's unit tests as one program.
# THREADS gives them two threads, whatever the others have (tools/test gives one).
function(hs_test name)
  if(NOT HEADSHARE_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "TORCH;THREADS" "" "SOURCES;LINKS;ALONE" ${ARGN})
  add_executable(${name}_test ${arg_SOURCES})
  target_link_libraries(${name}_test PRIVATE headshare::${name} ${arg_LINKS} GTest::gmock GTest::gtest_main
                        headshare_warnings)
  hs_precompiled(${name}_test "${arg_TORCH}" TEST)
  hs_in_groups(${name}_test 12 "${arg_ALONE}")
  target_compile_definitions(${name}_test PRIVATE HEADSHARE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name}_test --gtest_brief=1 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  if(arg_THREADS)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT OMP_NUM_THREADS=2)
  endif()
endfunction()

# hs_program(NAME SOURCES ... LINKS ... [TORCH] [ALONE ...]) declares a program, such as headshare or a tool of the
# tests.
function(hs_program name)
  cmake_parse_arguments(arg "TORCH" "" "SOURCES;LINKS;ALONE" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINKS} headshare_options headshare_warnings)
  hs_precompiled(${name} "${arg_TORCH}")
  hs_in_groups(${name} 18 "${arg_ALONE}")
endfunction()

# hs_link_sentencepiece_first(TARGET) lets a program or shared library find SentencePiece's symbols before libtorch's. Both
# define FLAGS_minloglevel: 4 bytes in libc10, an object of 32 in SentencePiece, whose constructor would overwrite what
# lies behind libc10's, a mutex among it. The other way round libc10 reads four bytes of the object as a log level.
function(hs_link_sentencepiece_first target)
  target_link_options(${target} BEFORE PRIVATE LINKER:--push-state,--no-as-needed ${sentencepiece_LINK_LIBRARIES}
                      LINKER:--pop-state)
endfunction()

# Sources are compiled in groups: most of a file's time goes into the headers that all files share, above all into the
# templates of libtorch's headers, which g++ instantiates in every file anew (docs/design/042-compiled-in-groups.md).
# Names in unnamed namespaces are therefore unique within a folder. CMake leaves sources out that have compile options
# of their own.
option(HEADSHARE_GROUPS "Compile the sources of a folder in groups" ON)
# Groups of a folder are equally large, with `most` sources or fewer.
function(hs_in_groups target most alone)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  list(REMOVE_ITEM sources ${alone} "")
  list(LENGTH sources count)
  math(EXPR groups "(${count} + ${most} - 1) / ${most}")
  if(groups)
    math(EXPR most "(${count} + ${groups} - 1) / ${groups}")
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${HEADSHARE_GROUPS} UNITY_BUILD_BATCH_SIZE ${most})
  set_source_files_properties(${alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# There are four precompiled headers: with libtorch or without, for tests (with gmock) or not. Tests are compiled with
# -O1, which takes half the time of -O3.
set(plain_headers <nlohmann/json.hpp> <algorithm> <filesystem> <functional> <map> <memory> <optional> <string> <vector>)
set(torch_headers <torch/nn/module.h> <torch/nn/cloneable.h> <torch/autograd.h> <ATen/ATen.h> ${plain_headers})
function(hs_header name)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${name}.cc CONTENT "")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/${name}.cc)
  target_precompile_headers(${name} PRIVATE ${ARGN})
  target_link_libraries(${name} PRIVATE headshare_options headshare_warnings nlohmann_json::nlohmann_json)
  if(name MATCHES "torch")
    target_link_libraries(${name} PRIVATE headshare::torch fmt::fmt)
  endif()
  if(name MATCHES "test")
    target_link_libraries(${name} PRIVATE GTest::gmock)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
endfunction()
hs_header(headshare_plain_header ${plain_headers})
hs_header(headshare_torch_header ${torch_headers})
if(HEADSHARE_TESTS)
  hs_header(headshare_plain_test_header ${plain_headers} <gmock/gmock.h>)
  hs_header(headshare_torch_test_header ${torch_headers} <gmock/gmock.h>)
endif()

# hs_precompiled(TARGET TORCH|"" [TEST]) gives the target its precompiled header, and libtorch where it is wanted.
function(hs_precompiled target torch)
  if(torch)
    target_link_libraries(${target} PUBLIC headshare::torch)
    set(kind torch)
  else()
    set(kind plain)
  endif()
  if("TEST" IN_LIST ARGN)
    string(APPEND kind _test)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  target_precompile_headers(${target} REUSE_FROM headshare_${kind}_header)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    # The header was compiled with -fPIC; with CMake's -fPIE for programs g++ would read it anew.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
endfunction()
