# `cmake --install --component python` fills the Python package with what is not Python: the program, the libraries that
# it needs and a Python without them lacks, and the torch they were built with. pyproject.toml calls it.
set(HEADSHARE_TORCH_CUDA False)
if(EXISTS ${torch_root}/lib/libtorch_cuda.so)
  set(HEADSHARE_TORCH_CUDA True)
endif()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/python/_built_with.py @ONLY CONTENT [[
"""The torch that the program and the libraries of this package were built with."""

TORCH = "@HEADSHARE_TORCH_VERSION@"
CUDA = @HEADSHARE_TORCH_CUDA@
]])
install(FILES ${CMAKE_BINARY_DIR}/python/_built_with.py DESTINATION . COMPONENT python EXCLUDE_FROM_ALL)

# hs_in_wheel(TARGET) puts a program or a library into the package's lib/. It finds libtorch in torch's own package,
# which stands beside this one; where it does not, _program.py says where torch is.
function(hs_in_wheel target)
  install(PROGRAMS $<TARGET_FILE:${target}> DESTINATION lib COMPONENT python EXCLUDE_FROM_ALL)
  install(CODE "set(binary $<TARGET_FILE_NAME:${target}>)" COMPONENT python EXCLUDE_FROM_ALL)
  install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/BundleLibraries.cmake COMPONENT python EXCLUDE_FROM_ALL)
endfunction()

# The target headshare_python is all that the package needs.
add_custom_target(headshare_python)
foreach(target IN ITEMS headshare headshare_torch_library)
  if(TARGET ${target})
    hs_in_wheel(${target})
    add_dependencies(headshare_python ${target})
  endif()
endforeach()
