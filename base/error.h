/* error: the one way in which things fail.
 *
 * Everything fallible returns dt_status (DT_OK is 0) and takes `dt_error *err` last.
 * err may be NULL: then only the status is given. The first error wins: DT_FAIL on an err
 * that already holds one leaves it alone, so clean-up never hides the cause.
 *
 * A message is complete enough to print as it is: lower case, no full stop, the problem first,
 * names in single quotes, then what to do. Callers may put context in front of it
 * (dt_error_prefix). Only mains and commands print.
 *
 * No memory: what grows with a model, a file, a recipe or the number of ranks fails with
 * DT_ERR_NOMEM. Where a few bytes are missing (a name, a message, strbuf.h) nothing could be reported
 * either: DT_ASSERT ends the process.
 */
#ifndef DT_BASE_ERROR_H
#define DT_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Chosen by what the caller does next. */
typedef enum dt_status {
    DT_OK = 0,
    DT_ERR_USAGE,       /* command line: say how it is called, exit 2 */
    DT_ERR_RECIPE,      /* recipe or its data: say where, exit 2 */
    DT_ERR_NOMEM,       /* no memory, host or device */
    DT_ERR_IO,          /* a system call failed; errno text is in the message */
    DT_ERR_CORRUPT,     /* what was read is damaged or of another version: try an older one */
    DT_ERR_CUDA,        /* device call failed: the process must end */
    DT_ERR_COMM,        /* communicator dead: rebuild */
    DT_ERR_PEER,        /* another rank died */
    DT_ERR_TIMEOUT,     /* waited for as long as was agreed */
    DT_ERR_UNSUPPORTED, /* understood, and not available here */
    DT_ERR_NOT_FOUND,   /* no such run, file, checkpoint */
    DT_ERR_BUSY,        /* somebody else holds it: wait, or ask them */
    DT_STATUS_COUNT
} dt_status;

typedef struct dt_error {
    dt_status code;
    int line;
    const char *file; /* static string */
    char message[2048];
} dt_error;

/* clang-format off */
#define DT_ERROR_INIT {DT_OK, 0, 0, {0}}
/* clang-format on */

#if defined(__GNUC__)
#define DT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define DT_PRINTF(fmt, args)
#endif

/* Records the error where none is recorded yet; returns `code`. */
dt_status dt_error_set(dt_error *err, dt_status code, const char *file, int line, const char *fmt,
                       ...) DT_PRINTF(5, 6);

/* Puts "text: " in front of a recorded message; nothing where none is recorded. */
void dt_error_prefix(dt_error *err, const char *fmt, ...) DT_PRINTF(2, 3);

/* Forgets what is recorded. */
void dt_error_clear(dt_error *err);

/* "recipe", "io", ...: the name of a code for logs and JSON. */
const char *dt_status_name(dt_status code);

#define DT_FAIL(err, code, ...) dt_error_set((err), (code), __FILE__, __LINE__, __VA_ARGS__)

/* Inside a function with `dt_status st` and a label `out`. */
#define DT_TRY(e)                \
    do {                         \
        if ((st = (e)) != DT_OK) \
            goto out;            \
    } while (0)

/* DT_FAIL, then out. */
#define DT_THROW(err, code, ...)                  \
    do {                                          \
        st = DT_FAIL((err), (code), __VA_ARGS__); \
        goto out;                                 \
    } while (0)

/* A bug, never bad input: prints where, and aborts. On in every build. */
#define DT_ASSERT(cond)                                  \
    do {                                                 \
        if (!(cond))                                     \
            dt_assert_failed(#cond, __FILE__, __LINE__); \
    } while (0)
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void dt_assert_failed(const char *cond, const char *file, int line);

#ifdef __cplusplus
}
#endif
#endif
