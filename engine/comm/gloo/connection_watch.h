/* connection_watch: ends waits on a broken connection.
 *
 * Why        when a connection breaks, Gloo (2022) wakes waiters for messages that have not begun, but
 *            forgets a message that is half sent or half received: its waiter sleeps
 *            until the timeout. A peer that is killed during a sum leaves exactly that state.
 * How        a canary: a receive from every peer that no peer ever answers. It has not begun, so
 *            Gloo does end it when a connection breaks. From then on a thread checks the current waits
 *            five times a second (buffers register their waits through a decorator of Gloo's transport
 *            context), and ends a wait that lasts three more seconds with the canary's
 *            exception. Not at once: a peer that is done can close while others still finish.
 *            On failure all connections are closed before the exception is thrown: the collective's
 *            memory is freed with its frames, and Gloo's thread could still be receiving into it.
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
    /* Runs `part`; if it throws, closes all connections and rethrows. */
    void or_close(const std::function<void()> &part);

  private:
    void run();
    void wait_for_canary();
    void look();

    /* target of the canary's receives; nothing ever arrives */
    char byte_ = 0;
    gloo::transport::Context &connections_; /* Gloo's connections; live as long as the canary */
    const std::unique_ptr<gloo::transport::UnboundBuffer> canary_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ending_ = false, ended_ = false;
    std::list<std::function<void()>> aborts_; /* functions that abort the current waits */
    uint64_t waits_ = 0, seen_waits_ = 0;     /* number of waits begun */
    int ticks_ = 0;                           /* ticks during the same wait */
    std::string reason_;
    std::thread thread_;
};

/* A full mesh whose waits are watched once it is connected. */
class dt_gloo_mesh : public gloo::rendezvous::Context
{
  public:
    using gloo::rendezvous::Context::Context;
    ~dt_gloo_mesh() override;

    void start_watch();
};

#endif
