# Read by cpack before it installs into a package: a package needs no record of its files (cmake/install_record.cmake).
set(ENV{DT_PACKAGE} 1)
