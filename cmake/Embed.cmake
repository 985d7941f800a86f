# hs_embed(TARGET FILE) writes FILE.inc into the build, for #include: a string literal with a new line and the file's
# text. The text has at most 64 KiB, the longest literal that C++ promises.
function(hs_embed target file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  get_filename_component(name ${file} NAME)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.inc CONTENT "R\"embedded(\n\${text})embedded\"\n")
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
endfunction()
