# This file sets warnings, the linker, the compiler cache and the sanitizers.
find_program(HEADSHARE_CCACHE ccache)
if(HEADSHARE_CCACHE)
  # A cached precompiled header is only found again when its time stamps are not part of the key.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${HEADSHARE_CCACHE})
endif()
find_program(HEADSHARE_MOLD mold)

add_library(headshare_options INTERFACE)
target_include_directories(headshare_options INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(headshare_options INTERFACE cxx_std_20)
add_library(headshare_warnings INTERFACE)
# -Wno-restrict silences false alarms from std::string in GCC 12 (bug 105651).
target_compile_options(headshare_warnings INTERFACE -Wall -Wextra -Wno-restrict -fpch-preprocess)
if(HEADSHARE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
if(HEADSHARE_SANITIZE)
  add_compile_options(-fsanitize=${HEADSHARE_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${HEADSHARE_SANITIZE})
endif()
if(HEADSHARE_COVERAGE)
  add_compile_options(-fsanitize-coverage=trace-pc)
endif()
