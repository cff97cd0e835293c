/* shim: implements shim.h: the border to Gloo, where exceptions become statuses, its own reduce-scatter,
 * and Gloo's other collectives. */
#include "engine/comm/gloo/shim.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "engine/channel/events.h"
#include "engine/comm/gloo/connection_watch.h"

/* --- the border */

struct dt_gloo {
    std::string name;
    std::shared_ptr<gloo::Context> context;
    std::unique_ptr<char[]> ring; /* buffer of dt_gloo_reduce_scatter; allocated on first use */
    std::unique_ptr<char[]> other; /* SWAP_BYTES for dt_gloo_all_reduce of two ranks; likewise */
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

/* ring: implements reduce-scatter, for which Gloo has no usable version.
 *
 * A ring: in step s, rank r sends the running sum of block r-1-s to r+1, and adds its own part to
 * that of block r-2-s, which comes from r-1. After world-1 steps it holds the sum of block r.
 * Blocks are processed in rounds of ROUND_BYTES, rounds in segments: while one segment is added, the
 * next two are in transit.
 */

namespace
{

constexpr size_t SEGMENT_BYTES = size_t{1} << 20;
constexpr size_t ROUND_BYTES = 8 * SEGMENT_BYTES;

/* Gloo's own collectives use the prefixes 1 to 8. */
constexpr uint64_t SLOT_PREFIX = uint64_t{0x40} << 56;

using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

class Round
{
  public:
    /* Bytes first .. first+bytes of each block; blocks start block_bytes apart. */
    Round(dt_gloo &gloo, const dt_sum &sum, char *out, char *in, size_t block_bytes, size_t first,
          size_t bytes)
        : gloo_(gloo), sum_(sum), world_(static_cast<size_t>(gloo.context->size)),
          rank_(static_cast<size_t>(gloo.context->rank)),
          segments_((bytes + SEGMENT_BYTES - 1) / SEGMENT_BYTES), bytes_(bytes),
          block_bytes_(block_bytes), out_(out + first), in_(in + first)
    {
        for (size_t seg = 0; seg < segments_; seg++)
            first_.push_back(buffer(in_part((rank_ + world_ - 1) % world_, seg), seg));
        for (size_t parity = 0; parity < 2; parity++)
            for (size_t seg = 0; seg < segments_; seg++)
                landing_.push_back(
                    buffer(gloo.ring.get() + parity * ROUND_BYTES + seg * SEGMENT_BYTES, seg));
    }

    void run()
    {
        const size_t items = (world_ - 1) * segments_;
        const size_t ahead = std::min<size_t>(2, segments_);

        for (size_t item = 0; item < std::min(ahead, items); item++)
            receive(item);
        for (size_t item = 0; item < items; item++) {
            const size_t step = item / segments_, seg = item % segments_;
            auto &landed = landing(step, seg);

            (step == 0 ? first_[seg] : landing(step - 1, seg))
                ->send(static_cast<int>((rank_ + 1) % world_), SLOT_PREFIX | item);
            landed->waitRecv();
            if (item + ahead < items)
                receive(item + ahead);
            sum_.two(step == world_ - 2 ? out_ + seg * SEGMENT_BYTES : landed->ptr, landed->ptr,
                     in_part((rank_ + 2 * world_ - 2 - step) % world_, seg),
                     landed->size / sum_.elem_bytes);
        }
        /* Wait for all sends: afterwards the caller, or the next round, reuses the memory. */
        for (size_t seg = 0; seg < segments_; seg++) {
            first_[seg]->waitSend();
            if (world_ > 2)
                landing(world_ - 3, seg)->waitSend();
        }
    }

  private:
    Buffer buffer(char *at, size_t seg)
    {
        return gloo_.context->createUnboundBuffer(
            at, std::min(SEGMENT_BYTES, bytes_ - seg * SEGMENT_BYTES));
    }

    char *in_part(size_t block, size_t seg)
    {
        return in_ + block * block_bytes_ + seg * SEGMENT_BYTES;
    }

    /* Buffer that a segment is received into in a step, and sent from in the next. */
    Buffer &landing(size_t step, size_t seg) { return landing_[step % 2 * segments_ + seg]; }

    void receive(size_t item)
    {
        const size_t step = item / segments_;
        auto &to = landing(step, item % segments_);

        if (step >= 2)
            to->waitSend();
        to->recv(static_cast<int>((rank_ + world_ - 1) % world_), SLOT_PREFIX | item);
    }

    dt_gloo &gloo_;
    const dt_sum &sum_;
    const size_t world_, rank_, segments_, bytes_, block_bytes_;
    char *const out_, *const in_;
    std::vector<Buffer> first_, landing_;
};

} // namespace

dt_status dt_gloo_reduce_scatter(dt_gloo *gloo, void *out, const void *in, size_t elems,
                                 const dt_sum *sum, dt_error *err)
{
    return dt_gloo_border(gloo->name, "sum and scatter over the ranks", err, [&] {
        const size_t block_bytes = elems * sum->elem_bytes;

        if (gloo->ring == nullptr)
            gloo->ring.reset(new char[2 * ROUND_BYTES]);
        for (size_t first = 0; first < block_bytes; first += ROUND_BYTES)
            Round(*gloo, *sum, static_cast<char *>(out),
                  static_cast<char *>(const_cast<void *>(in)), block_bytes, first,
                  std::min(ROUND_BYTES, block_bytes - first))
                .run();
    });
}

/* --- the functions of shim.h */

namespace
{

/* shim: implements Gloo's key-value store over the rendezvous of the events channel.
 *
 * Every rank sets keys that end in its index among the ranks that it connects to ("0", "1"; some
 * versions of Gloo also "rank_0", ...), the same kinds in the same order on all ranks of the run. So
 * a set is an all-gather under the key's stem over the whole run, which returns the keys of all ranks
 * at once; those of its peers are stored, and get and wait read them there. */
class ChannelStore : public gloo::rendezvous::Store
{
  public:
    explicit ChannelStore(const dt_gloo_options &options) : options_(options) {}

    void set(const std::string &key, const std::vector<char> &value) override
    {
        const std::string stem = key.substr(0, key.find_last_not_of("0123456789") + 1);
        const std::string meeting =
            std::string("comm/") + options_.name + (stem.empty() ? "" : "/" + stem);
        dt_gloo_failure failure = {DT_ERROR_INIT};
        json_t *values = nullptr;

        if (dt_events_rendezvous(options_.events, meeting.c_str(), value.data(), value.size(),
                                 options_.timeout_seconds, &values, &failure.error) != DT_OK)
            throw failure;
        std::unique_ptr<json_t, decltype(&json_decref)> owner(values, json_decref);
        for (int64_t rank = 0; rank < options_.world_size; rank++)
            values_[stem + std::to_string(rank)] =
                from_hex(json_array_get(values, static_cast<size_t>(options_.ranks[rank])));
    }

    std::vector<char> get(const std::string &key) override
    {
        auto found = values_.find(key);

        if (found == values_.end()) {
            dt_gloo_failure failure = {DT_ERROR_INIT};
            DT_FAIL(&failure.error, DT_ERR_COMM, "communicator '%s': no rank has set the key '%s'",
                    options_.name, key.c_str());
            throw failure;
        }
        return found->second;
    }

    void wait(const std::vector<std::string> &keys) override
    {
        for (const std::string &key : keys)
            get(key);
    }

    void wait(const std::vector<std::string> &keys, const std::chrono::milliseconds &) override
    {
        wait(keys);
    }

  private:
    /* dt_events_rendezvous has checked the digits. */
    static std::vector<char> from_hex(const json_t *text)
    {
        const char *digits = json_string_value(text);
        std::vector<char> out(json_string_length(text) / 2);
        auto nibble = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };

        for (size_t i = 0; i < out.size(); i++)
            out[i] = static_cast<char>(nibble(digits[2 * i]) << 4 | nibble(digits[2 * i + 1]));
        return out;
    }

    const dt_gloo_options &options_;
    std::map<std::string, std::vector<char>> values_;
};

} // namespace

/* Whether a failure to connect, identified by Gloo's text, would recur in the next attempt. */
static bool is_lasting(const char *text)
{
    static const char *const lasting[] = {"address family mismatch",
                                          "Address family not supported",
                                          "Cannot assign requested address",
                                          "Invalid argument",
                                          "Unable to find address",
                                          "Unable to find interface",
                                          "Unknown ai_family",
                                          "unknown sa_family"};

    for (const char *one : lasting)
        if (std::strstr(text, one) != nullptr)
            return true;
    return false;
}

dt_status dt_gloo_open(dt_gloo **out, const dt_gloo_options *options, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st;

    *out = nullptr;
    st = dt_gloo_border(options->name, "connect the ranks", &problem, [&] {
        gloo::transport::tcp::attr where(options->address);
        auto device = gloo::transport::tcp::CreateDevice(where);
        auto context = std::make_shared<dt_gloo_mesh>(static_cast<int>(options->rank),
                                                      static_cast<int>(options->world_size));
        ChannelStore store(*options);

        context->setTimeout(
            std::chrono::milliseconds(static_cast<int64_t>(options->timeout_seconds * 1e3)));
        context->connectFullMesh(store, device);
        context->start_watch();
        *out = new dt_gloo{options->name, context, nullptr, nullptr};
    });
    if (st == DT_OK)
        return st;
    if (st == DT_ERR_COMM && is_lasting(problem.message))
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "%s: the ranks need addresses of one family that reach each other "
                       "(network.interface; this rank has %s)",
                       problem.message, options->address);
    return dt_error_set(err, st, problem.file, problem.line, "%s", problem.message);
}

void dt_gloo_close(dt_gloo *gloo)
{
    if (gloo == nullptr)
        return;
    dt_gloo_border(gloo->name, "close", nullptr, [&] { gloo->context.reset(); });
    delete gloo;
}

namespace
{

/* Two ranks send each other as many bytes in a ring as if each sent all it has; a ring of Gloo needs four messages and
 * eight notices for that. */
constexpr size_t SWAP_BYTES = size_t{1} << 19;
constexpr uint64_t SWAP_SLOT = SLOT_PREFIX | uint64_t{1} << 40;

/* Sums over two ranks. Rank 0's values come first on both, so that NaNs have the same bits too. */
void sum_by_swap(dt_gloo &gloo, void *data, size_t elems, const dt_sum &sum)
{
    const int peer = 1 - gloo.context->rank;
    const size_t bytes = elems * sum.elem_bytes;

    if (gloo.other == nullptr)
        gloo.other.reset(new char[SWAP_BYTES]);
    auto mine = gloo.context->createUnboundBuffer(data, bytes);
    auto theirs = gloo.context->createUnboundBuffer(gloo.other.get(), bytes);
    theirs->recv(peer, SWAP_SLOT);
    mine->send(peer, SWAP_SLOT);
    theirs->waitRecv();
    mine->waitSend();
    sum.two(data, peer == 1 ? data : gloo.other.get(), peer == 1 ? gloo.other.get() : data, elems);
}

} // namespace

dt_status dt_gloo_all_reduce(dt_gloo *handle, void *data, size_t elems, const dt_sum *sum,
                             dt_error *err)
{
    return dt_gloo_border(handle->name, "sum over the ranks", err, [&] {
        gloo::AllreduceOptions options(handle->context);

        if (handle->context->size == 2 && elems * sum->elem_bytes <= SWAP_BYTES)
            return sum_by_swap(*handle, data, elems, *sum);

        options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
        options.setReduceFunction(sum->two);
        if (sum->elem_bytes == sizeof(uint16_t))
            options.setOutput(static_cast<uint16_t *>(data), elems);
        else if (sum->elem_bytes == sizeof(float))
            options.setOutput(static_cast<float *>(data), elems);
        else
            options.setOutput(static_cast<double *>(data), elems);
        gloo::allreduce(options);
    });
}

dt_status dt_gloo_all_gather(dt_gloo *handle, void *out, const void *in, size_t bytes,
                             dt_error *err)
{
    return dt_gloo_border(handle->name, "gather from the ranks", err, [&] {
        gloo::AllgatherOptions options(handle->context);
        char *all = static_cast<char *>(out);
        char *mine = all + static_cast<size_t>(handle->context->rank) * bytes;

        /* Without an input, Gloo uses the contents of the output. */
        if (mine != in)
            std::memcpy(mine, in, bytes);
        options.setOutput(all, static_cast<size_t>(handle->context->size) * bytes);
        gloo::allgather(options);
    });
}

dt_status dt_gloo_broadcast(dt_gloo *handle, void *data, size_t bytes, int root, dt_error *err)
{
    return dt_gloo_border(handle->name, "broadcast", err, [&] {
        gloo::BroadcastOptions options(handle->context);

        options.setRoot(root);
        options.setOutput(static_cast<char *>(data), bytes);
        gloo::broadcast(options);
    });
}

dt_status dt_gloo_swap(dt_gloo *handle, void *in, void *out, size_t bytes, double timeout_seconds,
                       dt_error *err)
{
    return dt_gloo_border(handle->name, "authenticate the ranks", err, [&] {
        gloo::AlltoallOptions options(handle->context);
        const size_t all = bytes * static_cast<size_t>(handle->context->size);

        options.setInput(static_cast<char *>(out), all);
        options.setOutput(static_cast<char *>(in), all);
        options.setTimeout(std::chrono::milliseconds(static_cast<int64_t>(timeout_seconds * 1e3)));
        gloo::alltoall(options);
    });
}

dt_status dt_gloo_barrier(dt_gloo *handle, dt_error *err)
{
    return dt_gloo_border(handle->name, "wait for all ranks", err, [&] {
        gloo::BarrierOptions options(handle->context);

        gloo::barrier(options);
    });
}
