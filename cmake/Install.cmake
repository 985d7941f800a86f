# `cmake --install` installs headshare; find_package(headshare) then brings headshare::<folder> back (see
# examples/consumer).
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/headshare)

get_property(libraries GLOBAL PROPERTY HEADSHARE_LIBRARIES)
set_target_properties(headshare_options PROPERTIES EXPORT_NAME options)
install(TARGETS ${libraries} headshare_options EXPORT headshare ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT headshare NAMESPACE headshare:: FILE headshare-targets.cmake DESTINATION ${package_dir})
install(DIRECTORY headshare DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.inc"
        PATTERN "*_test*" EXCLUDE PATTERN "*_cases.h" EXCLUDE PATTERN "test_*" EXCLUDE
        PATTERN "testing.h" EXCLUDE PATTERN "torch_library" EXCLUDE)
if(TARGET headshare)
  # The program finds libtorch where the build found it, also in the .venv of this tree, which
  # INSTALL_RPATH_USE_LINK_PATH would leave out as part of the project.
  set_target_properties(headshare PROPERTIES INSTALL_RPATH ${torch_root}/lib)
  install(TARGETS headshare EXPORT headshare RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})  # headshare::headshare
endif()

configure_package_config_file(cmake/headshare-config.cmake.in headshare-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(headshare-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/headshare-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/headshare-config-version.cmake
              cmake/Dependencies.cmake cmake/TorchTargets.cmake DESTINATION ${package_dir})
