#include "engine/comm/gloo/connection_watch.h"

#include <gloo/common/error.h>

#include <chrono>

#include "engine/progress.h"

namespace
{

constexpr auto TICK = std::chrono::milliseconds(200);
constexpr int TICKS_OF_GRACE = 15;

/* The limit of Gloo's clock is unknown; no run lasts ten years. */
constexpr auto FOR_EVER = std::chrono::hours(24 * 3650);

/* Distinct from Gloo's own collectives, which use the prefixes 1 to 8, and shim.cc, which uses
 * 0x40. */
constexpr uint64_t CANARY_SLOT = uint64_t{0x41} << 56;

class WatchedBuffer : public gloo::transport::UnboundBuffer
{
  public:
    WatchedBuffer(std::unique_ptr<gloo::transport::UnboundBuffer> real,
                  std::shared_ptr<dt_gloo_connection_watch> watch)
        : UnboundBuffer(real->ptr, real->size), real_(std::move(real)), watch_(std::move(watch))
    {
    }

    bool waitRecv(int *rank, std::chrono::milliseconds timeout) override
    {
        return watch_->guard([&] { return real_->waitRecv(rank, timeout); },
                             [this] { real_->abortWaitRecv(); });
    }

    bool waitSend(int *rank, std::chrono::milliseconds timeout) override
    {
        return watch_->guard([&] { return real_->waitSend(rank, timeout); },
                             [this] { real_->abortWaitSend(); });
    }

    void abortWaitRecv() override { real_->abortWaitRecv(); }
    void abortWaitSend() override { real_->abortWaitSend(); }

    void send(int to, uint64_t slot, size_t offset, size_t nbytes) override
    {
        watch_->or_close([&] { real_->send(to, slot, offset, nbytes); });
    }

    void recv(int from, uint64_t slot, size_t offset, size_t nbytes) override
    {
        watch_->or_close([&] { real_->recv(from, slot, offset, nbytes); });
    }

    void recv(std::vector<int> from, uint64_t slot, size_t offset, size_t nbytes) override
    {
        watch_->or_close([&] { real_->recv(std::move(from), slot, offset, nbytes); });
    }

  private:
    const std::unique_ptr<gloo::transport::UnboundBuffer> real_;
    const std::shared_ptr<dt_gloo_connection_watch> watch_;
};

class WatchedContext : public gloo::transport::Context
{
  public:
    WatchedContext(std::shared_ptr<gloo::transport::Context> real,
                   std::shared_ptr<dt_gloo_connection_watch> watch)
        : Context(real->rank, real->size), real_(std::move(real)), watch_(std::move(watch))
    {
        setTimeout(real_->getTimeout());
    }

    std::unique_ptr<gloo::transport::Pair> &getPair(int peer) override
    {
        return real_->getPair(peer);
    }

    std::unique_ptr<gloo::transport::Pair> &createPair(int peer) override
    {
        return real_->createPair(peer);
    }

    std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void *at,
                                                                        size_t bytes) override
    {
        return std::make_unique<WatchedBuffer>(real_->createUnboundBuffer(at, bytes), watch_);
    }

  private:
    const std::shared_ptr<gloo::transport::Context> real_;
    const std::shared_ptr<dt_gloo_connection_watch> watch_;
};

} // namespace

/* --- the watch */

dt_gloo_connection_watch::dt_gloo_connection_watch(gloo::transport::Context &connections)
    : connections_(connections), canary_(connections.createUnboundBuffer(&byte_, sizeof(byte_)))
{
    for (int rank = 0; rank < connections.size; rank++)
        if (rank != connections.rank)
            canary_->recv(rank, CANARY_SLOT, 0, sizeof(byte_));
    thread_ = std::thread([this] { run(); });
}

dt_gloo_connection_watch::~dt_gloo_connection_watch()
{
    std::unique_lock<std::mutex> lock(mutex_);

    ending_ = true;
    changed_.notify_all();
    /* Repeatedly, because an abort before the wait has begun is lost. */
    while (!changed_.wait_for(lock, std::chrono::milliseconds(1), [this] { return ended_; }))
        canary_->abortWaitRecv();
    lock.unlock();
    thread_.join();
}

bool dt_gloo_connection_watch::guard(const std::function<bool()> &wait,
                                     const std::function<void()> &abort)
{
    or_close([&] {
        std::list<std::function<void()>>::iterator own;
        bool done = false;
        std::exception_ptr thrown;

        {
            std::lock_guard<std::mutex> lock(mutex_);
            own = aborts_.insert(aborts_.end(), abort);
            waits_++;
        }
        try {
            done = wait();
        } catch (...) {
            thrown = std::current_exception();
        }
        std::lock_guard<std::mutex> lock(mutex_);
        aborts_.erase(own);
        if (thrown != nullptr)
            std::rethrow_exception(thrown);
        if (!done)
            throw gloo::IoException(reason_);
        dt_progress_made(); /* a piece was received or sent */
    });
    return true;
}

void dt_gloo_connection_watch::or_close(const std::function<void()> &part)
{
    try {
        part();
    } catch (...) {
        for (int rank = 0; rank < connections_.size; rank++)
            if (rank != connections_.rank)
                connections_.getPair(rank)->close();
        throw;
    }
}

/* Wait until a connection breaks or the watch ends. */
void dt_gloo_connection_watch::wait_for_canary()
{
    std::string reason = "a connection broke";

    try {
        if (canary_->waitRecv(nullptr, FOR_EVER))
            reason = "a rank has sent an unexpected message";
    } catch (const std::exception &problem) {
        reason = problem.what();
    } catch (...) {
    }
    std::lock_guard<std::mutex> lock(mutex_);
    reason_ = reason;
}

void dt_gloo_connection_watch::run()
{
    wait_for_canary();
    std::unique_lock<std::mutex> lock(mutex_);
    while (!changed_.wait_for(lock, TICK, [this] { return ending_; }))
        look();
    ended_ = true;
    changed_.notify_all();
}

/* Called at every tick; aborts repeatedly, because an abort before the wait has begun is lost. */
void dt_gloo_connection_watch::look()
{
    ticks_ = aborts_.empty() || waits_ != seen_waits_ ? 0 : ticks_ + 1;
    seen_waits_ = waits_;
    if (ticks_ >= TICKS_OF_GRACE)
        for (const auto &abort : aborts_)
            abort();
}

/* --- the mesh */

void dt_gloo_mesh::start_watch()
{
    auto watch = std::make_shared<dt_gloo_connection_watch>(*transportContext_);

    transportContext_ = std::make_shared<WatchedContext>(transportContext_, watch);
}

dt_gloo_mesh::~dt_gloo_mesh() = default;
