# Completes lib/${binary} in the Python package: shared libraries that it needs and that not every Debian or Ubuntu has
# are copied beside it, with their licences, and it looks for libraries there and in torch. libtorch comes from torch's
# own package, and glibc and the libraries of the compiler from the system.
set(lib $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib)
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${lib}/${binary} RESOLVED_DEPENDENCIES_VAR needed
     PRE_EXCLUDE_REGEXES "^lib(torch|c10|gomp)" "^lib(stdc\\+\\+|gcc_s|c|m|dl|rt|pthread)\\.so" "^ld-linux")
foreach(library IN LISTS needed)
  get_filename_component(name ${library} NAME)
  file(REAL_PATH ${library} file)
  if(NOT EXISTS ${lib}/${name})
    message(STATUS "Bundling: ${file}")
    file(COPY_FILE ${file} ${lib}/${name})
  endif()
  # Debian keeps each package's licence where its name says.
  execute_process(COMMAND dpkg-query --search */${name} OUTPUT_VARIABLE found ERROR_QUIET)
  string(REGEX MATCH "^[^:,]+" package "${found}")
  set(licence /usr/share/doc/${package}/copyright)
  if(package AND EXISTS ${licence})
    file(MAKE_DIRECTORY ${lib}/licences)
    file(COPY_FILE ${licence} ${lib}/licences/${package}.txt)
  endif()
endforeach()
file(RPATH_SET FILE ${lib}/${binary} NEW_RPATH "\$ORIGIN:\$ORIGIN/../../torch/lib")
