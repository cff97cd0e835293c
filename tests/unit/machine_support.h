/* machine_support: a folder that stands for / of another machine, with the files that a test puts into /proc and /sys. */
#ifndef DT_TESTS_UNIT_MACHINE_SUPPORT_H
#define DT_TESTS_UNIT_MACHINE_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"

static char machine[] = "/tmp/dtrun-machine-XXXXXX";

/* Makes the folder. For setups of cmocka, which a program may call several times. */
static inline int machine_make(void **state)
{
    memcpy(machine + strlen(machine) - 6, "XXXXXX", 6);
    return mkdtemp(machine) != NULL ? 0 : 1;
}

static inline int machine_remove(void **state)
{
    return dt_file_remove_tree(machine, NULL) == DT_OK ? 0 : 1;
}

/* Writes a file of the machine, and makes its folders. */
static inline void machine_put(const char *path, const char *text)
{
    char whole[4096], *slash;

    snprintf(whole, sizeof(whole), "%s/%s", machine, path);
    slash = strrchr(whole, '/');
    *slash = '\0';
    assert_int_equal(dt_file_make_dirs(whole, 0700, NULL), DT_OK);
    *slash = '/';
    assert_int_equal(dt_file_write_atomic(whole, text, strlen(text), 0600, NULL), DT_OK);
}

#endif
