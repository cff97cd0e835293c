# dt_bundle's script: the modules of MODULES (NAME=FILE;...), each after those that it imports, as one script, whose
# last line is CALL. Each becomes a function's body, so that their own names stay their own. What it understands of
# the language is what the page's modules use: imports of one line from '/NAME.js' of names or as one, exports in
# front of a function, class or const.
set(all "const modules = {};\n")
foreach(module ${MODULES})
  string(REGEX MATCH "^([a-z_]+)=(.*)$" matched "${module}")
  set(name ${CMAKE_MATCH_1})
  file(READ ${CMAKE_MATCH_2} text)
  string(REGEX MATCHALL "\nexport (async function|function|class|const) [A-Za-z_]+" exports "\n${text}")
  set(names "")
  foreach(export ${exports})
    string(REGEX REPLACE ".* " "" export "${export}")
    string(APPEND names "${export}, ")
  endforeach()
  string(REGEX REPLACE "import {([^}]*)} from '/([a-z_]+)\\.js';" "const {\\1} = modules.\\2;" text "${text}")
  string(REGEX REPLACE "import \\* as ([a-z_]+) from '/([a-z_]+)\\.js';" "const \\1 = modules.\\2;" text "${text}")
  string(REGEX REPLACE "\nexport " "\n" text "\n${text}")
  if(text MATCHES "\n(import|export) ")
    message(FATAL_ERROR "${name}.js: an import or export that cmake/bundle.cmake does not understand")
  endif()
  string(APPEND all "modules.${name} = (() => {${text}\nreturn {${names}};\n})();\n")
endforeach()
file(WRITE ${OUT} "${all}${CALL}\n")
