# Writes a header with the commit that is being built, and touches it only when that changes. Run with
# -DSOURCE=repository -DHEADER=file at every build. Outside a git checkout the commit is "unknown".
execute_process(
  COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  set(commit unknown)
endif()
set(text "#define HEADSHARE_COMMIT \"${commit}\"\n")
set(before "")
if(EXISTS ${HEADER})
  file(READ ${HEADER} before)
endif()
if(NOT text STREQUAL before)
  file(WRITE ${HEADER} "${text}")
endif()
