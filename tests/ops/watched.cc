#include "tests/ops/watched.h"

#include "base/clock.h"

enum index {
#define INDEX(op) INDEX_##op,
    DT_OPS(INDEX)
};

#define NAMED(op) {#op, 0, 0},
watched_op watched_ops[DT_OPS_COUNT] = {DT_OPS(NAMED)};

/* The watched op of a member of dt_ops, with any arguments. */
template <index OP, typename... Args> struct watched {
    static dt_status (*real)(Args...);

    static dt_status call(Args... args)
    {
        double start = dt_clock_monotonic_seconds();
        dt_status st = real(args...);

        watched_ops[OP].seconds += dt_clock_monotonic_seconds() - start;
        watched_ops[OP].calls++;
        return st;
    }
};

template <index OP, typename... Args> dt_status (*watched<OP, Args...>::real)(Args...) = nullptr;

template <index OP, typename... Args>
static auto watch(dt_status (*real)(Args...)) -> dt_status (*)(Args...)
{
    watched<OP, Args...>::real = real;
    return real != nullptr ? watched<OP, Args...>::call : nullptr;
}

const dt_ops *watched_table(const dt_ops *real)
{
    static dt_ops table;

#define WATCH(op) table.op = watch<INDEX_##op>(real->op);
    DT_OPS(WATCH)
    return &table;
}
