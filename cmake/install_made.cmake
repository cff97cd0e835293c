# At the time of the installation: what dtrun itself writes (manual pages, completions), and units that
# name its place. Wants DT_PROGRAM, DT_SOURCE, and the variables of an installation.
set(prefix ${CMAKE_INSTALL_PREFIX})
# Not in the build folder: who installs may be another user than who builds.
execute_process(COMMAND mktemp -d OUTPUT_VARIABLE DT_MADE OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
file(MAKE_DIRECTORY ${DT_MADE}/man ${DT_MADE}/systemd)

function(dt_made file) # arguments of dtrun...
  execute_process(COMMAND ${DT_PROGRAM} ${ARGN} OUTPUT_FILE ${DT_MADE}/${file} RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "'${DT_PROGRAM} ${ARGN}' did not make ${file}")
  endif()
endfunction()

dt_made(man/dtrun.1 help --man)
execute_process(COMMAND ${DT_PROGRAM} complete -- "" OUTPUT_VARIABLE commands)
string(REGEX MATCHALL "(^|\n)[a-z]+\t" commands "${commands}")
foreach(command ${commands})
  string(STRIP "${command}" command)
  dt_made(man/dtrun-${command}.1 help --man ${command})
endforeach()
dt_made(dtrun completion bash)
dt_made(_dtrun completion zsh)
dt_made(dtrun.fish completion fish)

set(DT_DTRUN ${prefix}/bin/dtrun)
foreach(unit dtrun-serve.service dtrun-supervisors.service)
  configure_file(${DT_SOURCE}/packaging/systemd/${unit}.in ${DT_MADE}/systemd/${unit} @ONLY)
endforeach()

# Debian's zsh looks into vendor-completions for what packages bring.
set(zsh share/zsh/site-functions)
if(prefix STREQUAL "/usr")
  set(zsh share/zsh/vendor-completions)
endif()
file(GLOB pages ${DT_MADE}/man/*.1)
file(INSTALL ${pages} DESTINATION ${prefix}/share/man/man1)
file(INSTALL ${DT_MADE}/dtrun DESTINATION ${prefix}/share/bash-completion/completions)
file(INSTALL ${DT_MADE}/_dtrun DESTINATION ${prefix}/${zsh})
file(INSTALL ${DT_MADE}/dtrun.fish DESTINATION ${prefix}/share/fish/vendor_completions.d)
file(INSTALL ${DT_MADE}/systemd/dtrun-serve.service ${DT_MADE}/systemd/dtrun-supervisors.service
  ${DT_SOURCE}/packaging/systemd/dtrun-supervisors.timer DESTINATION ${prefix}/lib/systemd/user)
file(REMOVE_RECURSE ${DT_MADE})
