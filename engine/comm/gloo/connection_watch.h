/* connection_watch: ends a wait on a connection that is gone.
 *
 * Why        when a connection breaks, Gloo (2022) wakes those who wait for messages that are still
 *            to begin, but forgets a message that is half sent or half received: its waiter sleeps
 *            until the timeout. A peer that is killed in the middle of a sum leaves it just there.
 * How        a canary: one receive from every peer that nobody ever answers. It has not begun, so
 *            Gloo does end it when a connection breaks. From then on a thread looks five times a
 *            second at who waits (buffers come through a decorator of Gloo's transport context and
 *            say so), and ends a wait that lasts for three seconds more with the canary's
 *            exception. Not at once: a peer that is done may close while others still finish.
 *            What fails closes all connections before it throws: the collective's memory goes with
 *            its frames, and Gloo's thread may be half way through a message into it.
 */
#ifndef DT_ENGINE_COMM_GLOO_CONNECTION_WATCH_H
#define DT_ENGINE_COMM_GLOO_CONNECTION_WATCH_H

#include <gloo/rendezvous/context.h>
#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

class dt_gloo_connection_watch
{
  public:
    explicit dt_gloo_connection_watch(gloo::transport::Context &connections);
    ~dt_gloo_connection_watch();

    /* Runs `wait`, which returns false once `abort` was called; then throws. */
    bool guard(const std::function<bool()> &wait, const std::function<void()> &abort);
    /* Runs `part`; where it throws, closes all connections and throws on. */
    void or_close(const std::function<void()> &part);

  private:
    void run();
    void wait_for_canary();
    void look();

    char byte_ = 0;                         /* where nothing ever arrives */
    gloo::transport::Context &connections_; /* lives as long as the canary */
    const std::unique_ptr<gloo::transport::UnboundBuffer> canary_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ending_ = false, ended_ = false;
    std::list<std::function<void()>> aborts_; /* of those who wait */
    uint64_t waits_ = 0, seen_waits_ = 0;     /* that have begun */
    int ticks_ = 0;                           /* of the same wait */
    std::string reason_;
    std::thread thread_;
};

/* A full mesh whose waits are watched once it stands. */
class dt_gloo_mesh : public gloo::rendezvous::Context
{
  public:
    using gloo::rendezvous::Context::Context;
    ~dt_gloo_mesh() override;

    void start_watch();
};

#endif
