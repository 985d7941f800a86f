# This file declares headshare::torch, libtorch as it lies in the PyPI wheel. The wheel's own CMake package stops with
# an error where a CUDA wheel meets a machine without the CUDA toolkit, so the target is our own: the C++ API needs no
# CUDA header. The file sets HEADSHARE_TORCH_VERSION and HEADSHARE_TORCH_PYTHON. It is also part of an installation,
# whose users may set HEADSHARE_PYTHON or HEADSHARE_TORCH.
set(HEADSHARE_PYTHON "" CACHE STRING "A Python whose torch is the libtorch to build with; empty: .venv's, else python3")
set(HEADSHARE_TORCH "" CACHE STRING "The folder of the torch package to build with; empty: that of HEADSHARE_PYTHON")
if(HEADSHARE_TORCH)
  set(pythons "")
  set(torch_root ${HEADSHARE_TORCH})
  if(NOT EXISTS ${torch_root}/lib/libtorch_cpu.so)
    message(FATAL_ERROR "No lib/libtorch_cpu.so in ${torch_root}, which -DHEADSHARE_TORCH=... names; "
                        "name the folder of an installed torch, or leave it empty to ask a Python")
  endif()
elseif(HEADSHARE_PYTHON)
  set(pythons ${HEADSHARE_PYTHON})
else()
  set(pythons ${HEADSHARE_DEFAULT_PYTHON} python3)
endif()
foreach(python IN LISTS pythons)
  execute_process(
    COMMAND ${python} -c
            "import importlib.util as u, os; s = u.find_spec('torch'); print(os.path.dirname(s.origin))"
    OUTPUT_VARIABLE torch_root OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(torch_root AND EXISTS ${torch_root}/lib/libtorch_cpu.so)
    set(HEADSHARE_TORCH_PYTHON ${python})
    break()
  endif()
  set(torch_root "")
endforeach()
if(NOT torch_root)
  message(FATAL_ERROR "No torch in any of: ${pythons}. Run tools/setup (or make build), "
                      "or name a Python that has torch with -DHEADSHARE_PYTHON=...")
endif()

file(STRINGS ${torch_root}/version.py torch_version_line REGEX "^__version__")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" HEADSHARE_TORCH_VERSION "${torch_version_line}")
if(HEADSHARE_TORCH_VERSION VERSION_LESS HEADSHARE_TORCH_LEAST)
  message(FATAL_ERROR "torch ${HEADSHARE_TORCH_VERSION} in ${torch_root} is older than the "
                      "${HEADSHARE_TORCH_LEAST} headshare needs")
endif()
message(STATUS "torch ${HEADSHARE_TORCH_VERSION} in ${torch_root}")

if(NOT TARGET headshare::torch)
  add_library(headshare::torch INTERFACE IMPORTED GLOBAL)
  target_include_directories(headshare::torch INTERFACE
    ${torch_root}/include ${torch_root}/include/torch/csrc/api/include)
  if(EXISTS ${torch_root}/lib/libtorch_cuda.so)
    # Nothing refers to torch_cuda by symbol: its kernels register themselves when it is loaded.
    target_link_libraries(headshare::torch INTERFACE
      -Wl,--no-as-needed,${torch_root}/lib/libtorch_cuda.so,${torch_root}/lib/libc10_cuda.so,--as-needed)
    # libtorch_cuda's own needs (cuBLAS, NCCL, ...) lie in other wheels, which torch's rpath finds and GNU ld would not.
    target_link_options(headshare::torch INTERFACE -Wl,--allow-shlib-undefined)
  endif()
  target_link_libraries(headshare::torch INTERFACE ${torch_root}/lib/libtorch_cpu.so ${torch_root}/lib/libc10.so)
  # libtorch brings an OpenMP whose threads are ours; a second runtime would fight it for the cores.
  file(GLOB torch_gomp ${torch_root}/lib/libgomp*.so*)
  if(torch_gomp)
    list(GET torch_gomp 0 torch_gomp)
    target_link_libraries(headshare::torch INTERFACE ${torch_gomp})
  else()
    target_link_libraries(headshare::torch INTERFACE gomp)
  endif()
endif()
