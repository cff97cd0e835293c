# The libraries of the engine's side.
find_package(PkgConfig REQUIRED)

# dt_library(jansson module): the target dt_jansson is the library of that pkg-config module. A program with the property
# DT_STATIC gets the static one.
function(dt_library name module)
  string(TOUPPER ${name} prefix)
  pkg_check_modules(${prefix} QUIET IMPORTED_TARGET GLOBAL ${module})
  if(NOT TARGET PkgConfig::${prefix})
    message(FATAL_ERROR "${module} is missing: base/packages.sh build test installs what is needed")
  endif()
  find_library(${prefix}_STATIC NAMES lib${name}.a)
  add_library(dt_${name} INTERFACE)
  target_include_directories(dt_${name} SYSTEM INTERFACE ${${prefix}_INCLUDE_DIRS})
  target_link_libraries(dt_${name} INTERFACE
    $<IF:$<BOOL:$<TARGET_PROPERTY:DT_STATIC>>,${${prefix}_STATIC},PkgConfig::${prefix}>)
endfunction()

dt_library(jansson jansson)
dt_library(xxhash libxxhash)

# libutf8proc is linked statically: the engine takes it to nodes, and a text has the same tokens on all of them.
find_library(UTF8PROC_LIBRARY NAMES libutf8proc.a utf8proc)
find_path(UTF8PROC_INCLUDE utf8proc.h)
if(NOT UTF8PROC_LIBRARY OR NOT UTF8PROC_INCLUDE)
  message(FATAL_ERROR "libutf8proc is missing: base/packages.sh build test installs what is needed")
endif()
add_library(dt_utf8proc INTERFACE)
target_include_directories(dt_utf8proc SYSTEM INTERFACE ${UTF8PROC_INCLUDE})
target_link_libraries(dt_utf8proc INTERFACE ${UTF8PROC_LIBRARY})
