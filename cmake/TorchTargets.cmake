# headshare_torch: libtorch as it lies in the PyPI wheel. The wheel's own CMake package stops with
# an error where a CUDA wheel meets a machine without the CUDA toolkit, so the targets are our own:
# the C++ API needs no CUDA header.
if(NOT HEADSHARE_PYTHON)
  set(HEADSHARE_PYTHON ${CMAKE_SOURCE_DIR}/.venv/bin/python)
  if(NOT EXISTS ${HEADSHARE_PYTHON})
    set(HEADSHARE_PYTHON python3)
  endif()
endif()
set(HEADSHARE_PYTHON ${HEADSHARE_PYTHON} CACHE STRING "A Python whose torch is the libtorch to build with")

execute_process(
  COMMAND ${HEADSHARE_PYTHON} -c
          "import importlib.util as u, os; s = u.find_spec('torch'); print(os.path.dirname(s.origin))"
  OUTPUT_VARIABLE torch_root OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE torch_result ERROR_QUIET)
if(NOT torch_result EQUAL 0 OR NOT EXISTS ${torch_root}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "No torch in ${HEADSHARE_PYTHON}: run tools/setup (or make build), "
                      "or name a Python that has torch >= 2.11 with -DHEADSHARE_PYTHON=...")
endif()
file(STRINGS ${torch_root}/version.py torch_version_line REGEX "^__version__")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" HEADSHARE_TORCH_VERSION "${torch_version_line}")
if(HEADSHARE_TORCH_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR "torch ${HEADSHARE_TORCH_VERSION} in ${torch_root} is older than the 2.11 headshare needs")
endif()
message(STATUS "torch ${HEADSHARE_TORCH_VERSION} in ${torch_root}")

add_library(headshare_torch INTERFACE)
target_include_directories(headshare_torch SYSTEM INTERFACE
  $<BUILD_INTERFACE:${torch_root}/include>
  $<BUILD_INTERFACE:${torch_root}/include/torch/csrc/api/include>)
target_link_directories(headshare_torch INTERFACE $<BUILD_INTERFACE:${torch_root}/lib>)
set(torch_libraries torch_cpu c10)
if(EXISTS ${torch_root}/lib/libtorch_cuda.so)
  # Nothing refers to torch_cuda by symbol: its kernels register themselves when it is loaded.
  list(PREPEND torch_libraries -Wl,--no-as-needed torch_cuda c10_cuda -Wl,--as-needed)
endif()
target_link_libraries(headshare_torch INTERFACE "$<BUILD_INTERFACE:${torch_libraries}>")
target_link_options(headshare_torch INTERFACE $<BUILD_INTERFACE:-Wl,-rpath,${torch_root}/lib>)
set(HEADSHARE_TORCH_ROOT ${torch_root})

# One precompiled header for everything that includes libtorch: 20 s a file become 5 s.
file(WRITE ${CMAKE_BINARY_DIR}/torch_pch.cc "")
add_library(headshare_torch_pch OBJECT ${CMAKE_BINARY_DIR}/torch_pch.cc)
target_link_libraries(headshare_torch_pch PRIVATE headshare_options headshare_warnings headshare_torch
                      nlohmann_json::nlohmann_json)
target_precompile_headers(headshare_torch_pch PRIVATE
  <torch/nn/module.h> <torch/nn/cloneable.h> <torch/autograd.h> <ATen/ATen.h> <nlohmann/json.hpp>
  <functional> <map> <memory> <optional> <string> <vector>)
