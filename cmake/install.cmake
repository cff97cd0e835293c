# cmake --install BUILD [--prefix P], cmake --build BUILD --target uninstall, and cpack -G DEB in the build folder
# (docs/install.md).
#
#   bin/dtrun           what people call         share/man, completions     made by dtrun itself
#   libexec/dtrun/      what dtrun calls         lib/systemd/user/          units for a user
#   share/doc/dtrun/    docs and examples
install(CODE "
  include(\"${PROJECT_SOURCE_DIR}/cmake/install_record.cmake\")
  dt_record_begin(bin libexec/dtrun share/doc/dtrun share/man/man1 share/bash-completion/completions
    share/zsh/site-functions share/zsh/vendor-completions share/fish/vendor_completions.d lib/systemd/user)")
install(TARGETS dtrun RUNTIME DESTINATION bin)
install(TARGETS dtrun-agent dtrun-engine dtrun-reach RUNTIME DESTINATION libexec/dtrun)
if(TARGET dtrun-cuda)
  install(TARGETS dtrun-cuda LIBRARY DESTINATION libexec/dtrun)
endif()
install(PROGRAMS packaging/active-runs DESTINATION libexec/dtrun)
install(DIRECTORY docs DESTINATION share/doc/dtrun)
install(DIRECTORY examples DESTINATION share/doc/dtrun PATTERN "*.sh" EXCLUDE)
install(FILES README.md CHANGES.md DESTINATION share/doc/dtrun)
install(CODE "
  set(DT_PROGRAM \"$<TARGET_FILE:dtrun>\")
  set(DT_SOURCE \"${PROJECT_SOURCE_DIR}\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/install_made.cmake\")
  dt_record_end(\"${PROJECT_SOURCE_DIR}\")")
add_custom_target(uninstall COMMAND ${PROJECT_SOURCE_DIR}/packaging/uninstall ${CMAKE_INSTALL_PREFIX} VERBATIM USES_TERMINAL)

# A Debian package: dpkg-shlibdeps finds what the programs need.
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package.cmake)
set(CPACK_PACKAGE_NAME dtrun)
set(CPACK_PACKAGE_VENDOR "the dtrun project")
set(CPACK_PACKAGE_CONTACT "the dtrun project <nobody@dtrun.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${DT_CUDA_LIBRARY_DIRS}) # CUDA's often come from no package
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "openssh-client, ca-certificates")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "bash-completion, man-db")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/debian/prerm)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
  "You write one YAML recipe; dtrun launches its own training engine, or any
other program such as a PyTorch script, on this machine, over ssh or under
Slurm. It keeps every metric and checkpoint in a run history, and shows runs
in the terminal and on a web page.
The engine trains GPT-2, Llama and Qwen decoders, encoder-decoders for
translation, and multi-layer perceptrons, with dp, ddp, fsdp and tensor
parallelism, from random or existing weights. If a rank, an agent, a node or
the launch machine dies, the run continues.")
include(CPack)
