# At the time of the installation: records what is installed below the prefix, for PREFIX/libexec/dtrun/uninstall.
#
#   libexec/dtrun/installed   a line for each file, relative to the prefix, then a line for each folder that the
#                             installation made, ending in "/"; a folder comes after those inside it
#
# The record lies below the prefix, not in the build folder: one build can be installed with several prefixes, and
# cpack, which overwrites install_manifest.txt there, leaves it alone. A package has no record: dpkg keeps its own
# (cmake/package.cmake). An update adds to the record of the installation before.
cmake_policy(VERSION 3.22) # an installation sets none

# dt_record_begin(folder...): before anything is installed; the folders that files go to, relative to the prefix.
macro(dt_record_begin)
  if(CMAKE_INSTALL_PREFIX AND NOT IS_ABSOLUTE "${CMAKE_INSTALL_PREFIX}")
    get_filename_component(CMAKE_INSTALL_PREFIX "${CMAKE_INSTALL_PREFIX}" ABSOLUTE)
  endif()
  set(DT_ROOT "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
  set(DT_ABSENT)
  foreach(folder ${ARGN})
    while(folder AND NOT EXISTS "${DT_ROOT}/${folder}")
      list(APPEND DT_ABSENT "${folder}")
      get_filename_component(folder "${folder}" DIRECTORY)
    endwhile()
  endforeach()
  if(NOT EXISTS "${DT_ROOT}")
    list(APPEND DT_ABSENT .)
  endif()
endmacro()

# dt_record_end(source): after everything is installed; the folder of the sources.
macro(dt_record_end source)
  if(NOT DEFINED ENV{DT_PACKAGE})
    file(INSTALL "${source}/packaging/uninstall" DESTINATION "${CMAKE_INSTALL_PREFIX}/libexec/dtrun" USE_SOURCE_PERMISSIONS)
    set(record "${DT_ROOT}/libexec/dtrun/installed")
    set(lines libexec/dtrun/installed)
    set(made ${DT_ABSENT}) # now, or by an earlier installation
    if(EXISTS "${record}")
      file(STRINGS "${record}" before)
      foreach(line ${before})
        if(line MATCHES "/$")
          string(REGEX REPLACE "/$" "" line "${line}")
          list(APPEND made "${line}")
        else()
          list(APPEND lines "${line}")
        endif()
      endforeach()
    endif()
    set(folders ${made})
    foreach(file ${CMAKE_INSTALL_MANIFEST_FILES})
      file(RELATIVE_PATH file "${CMAKE_INSTALL_PREFIX}/" "${file}")
      list(APPEND lines "${file}")
      get_filename_component(folder "${file}" DIRECTORY)
      set(inside)
      while(folder) # all folders inside one that dtrun made are dtrun's too
        list(APPEND inside "${folder}")
        if(folder IN_LIST made)
          list(APPEND folders ${inside})
        endif()
        get_filename_component(folder "${folder}" DIRECTORY)
      endwhile()
    endforeach()
    list(TRANSFORM folders APPEND /)
    list(SORT lines)
    list(SORT folders ORDER DESCENDING)
    list(APPEND lines ${folders})
    list(REMOVE_DUPLICATES lines)
    list(JOIN lines "\n" lines)
    file(WRITE "${record}" "${lines}\n")
    file(CHMOD "${record}" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  endif()
endmacro()
