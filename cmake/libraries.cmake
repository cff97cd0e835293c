# The libraries of the engine's side, and what stands in for them. A machine that is lent for its
# card often has compilers and CUDA, and nobody who may install packages: with DT_PARTS=engine a
# library that is not found is replaced by a small one of our own (base/bare, tests/bare).
option(DT_BARE "As if no library were installed: with DT_PARTS=engine, to try the stand-ins" OFF)

if(DT_BARE)
  if(NOT DT_PARTS STREQUAL engine)
    message(FATAL_ERROR "DT_BARE goes with -DDT_PARTS=engine: dtrun itself needs its libraries")
  endif()
  set(CMAKE_DISABLE_FIND_PACKAGE_PkgConfig ON)
  set(CMAKE_DISABLE_FIND_PACKAGE_Gloo ON)
  set(DNNL_LIBRARY "")
  set(DNNL_INCLUDE "")
endif()
if(DT_PARTS STREQUAL engine)
  find_package(PkgConfig QUIET)
else()
  find_package(PkgConfig REQUIRED)
endif()

# dt_library(jansson module): the target dt_jansson is the library of that pkg-config module, or else
# dt_bare_jansson.
function(dt_library name module)
  string(TOUPPER ${name} prefix)
  add_library(dt_${name} INTERFACE)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(${prefix} QUIET IMPORTED_TARGET ${module})
  endif()
  if(TARGET PkgConfig::${prefix})
    target_link_libraries(dt_${name} INTERFACE PkgConfig::${prefix})
  elseif(DT_PARTS STREQUAL engine)
    message(STATUS "${name} not found: our own stands in for it")
    target_link_libraries(dt_${name} INTERFACE dt_bare_${name})
  else()
    message(FATAL_ERROR "${module} is missing: base/packages.sh build test installs what is needed")
  endif()
endfunction()

dt_library(jansson jansson)
dt_library(xxhash libxxhash)
