/* error: returns failures as a status with a message.
 *
 * A function that can fail returns dt_status (DT_OK is 0) and takes `dt_error *err` last. With err NULL only the
 * status is returned. The first error wins: DT_FAIL does not change an err that already holds one, so that clean-up
 * never hides the cause.
 *
 * A message can be printed as it is: lower case, no full stop, the problem first, names in single quotes, then the
 * remedy. Callers may add context in front (dt_error_prefix). Only mains and commands print.
 *
 * Out of memory: DT_ERR_NOMEM is for the large buffers of the engine (weights, activations, data; host or device), so
 * that a rank can say that a model does not fit, and for libraries. If a small object cannot be allocated (memory.h,
 * strbuf.h), the process ends.
 */
#ifndef DT_BASE_ERROR_H
#define DT_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Statuses are divided by what the caller does next. */
typedef enum dt_status {
    DT_OK = 0,
    DT_ERR_USAGE,       /* command line: show the usage, exit 2 */
    DT_ERR_RECIPE,      /* recipe or its data: show the place, exit 2 */
    DT_ERR_NOMEM,       /* no memory, host or device */
    DT_ERR_IO,          /* a system call failed; errno text is in the message */
    DT_ERR_CORRUPT,     /* input is damaged or has another version: try an older file */
    DT_ERR_CUDA,        /* device call failed: the process must end */
    DT_ERR_COMM,        /* communicator dead: rebuild */
    DT_ERR_PEER,        /* another rank died */
    DT_ERR_TIMEOUT,     /* the time limit of the call is over */
    DT_ERR_UNSUPPORTED, /* valid, but not available here */
    DT_ERR_NOT_FOUND,   /* no such run, file, checkpoint */
    DT_ERR_BUSY,        /* another process holds it: wait and try again */
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

/* Records the error unless one is already recorded; returns `code`. */
dt_status dt_error_set(dt_error *err, dt_status code, const char *file, int line, const char *fmt,
                       ...) DT_PRINTF(5, 6);

/* Puts "text: " in front of a recorded message; does nothing if none is recorded. */
void dt_error_prefix(dt_error *err, const char *fmt, ...) DT_PRINTF(2, 3);

/* Clears the recorded error. */
void dt_error_clear(dt_error *err);

/* Returns the name of a code for logs and JSON: "recipe", "io", ... */
const char *dt_status_name(dt_status code);

#define DT_FAIL(err, code, ...) dt_error_set((err), (code), __FILE__, __LINE__, __VA_ARGS__)

/* Goes to `out` if the call fails; for functions with `dt_status st` and a label `out`. */
#define DT_TRY(e)                \
    do {                         \
        if ((st = (e)) != DT_OK) \
            goto out;            \
    } while (0)

/* Records an error with DT_FAIL and goes to `out`. */
#define DT_THROW(err, code, ...)                  \
    do {                                          \
        st = DT_FAIL((err), (code), __VA_ARGS__); \
        goto out;                                 \
    } while (0)

/* Prints the place and aborts if the condition is false. For bugs, never for bad input. Enabled in every build. */
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
