/* shim_int: declares what the C++ files of the shim share. */
#ifndef DT_ENGINE_COMM_GLOO_SHIM_INT_H
#define DT_ENGINE_COMM_GLOO_SHIM_INT_H

#include <gloo/context.h>

#include <exception>
#include <memory>
#include <new>
#include <string>

#include "engine/comm/gloo/shim.h"

struct dt_gloo {
    std::string name;
    std::shared_ptr<gloo::Context> context;
    std::unique_ptr<char[]> ring; /* buffer of dt_gloo_reduce_scatter; allocated on first use */
};

/* Exception that carries a dt_error through Gloo's frames. */
struct dt_gloo_failure {
    dt_error error;
};

/* Runs `body`; converts any exception to a status. */
template <typename Body>
dt_status dt_gloo_border(const std::string &name, const char *what, dt_error *err, Body body)
{
    try {
        body();
        return DT_OK;
    } catch (const dt_gloo_failure &failure) {
        return dt_error_set(err, failure.error.code, failure.error.file, failure.error.line, "%s",
                            failure.error.message);
    } catch (const std::bad_alloc &) {
        return DT_FAIL(err, DT_ERR_NOMEM, "communicator '%s': no memory to %s", name.c_str(), what);
    } catch (const std::exception &problem) {
        return DT_FAIL(err, DT_ERR_COMM, "communicator '%s': cannot %s: %s", name.c_str(), what,
                       problem.what());
    } catch (...) {
        return DT_FAIL(err, DT_ERR_COMM, "communicator '%s': cannot %s", name.c_str(), what);
    }
}

#endif
