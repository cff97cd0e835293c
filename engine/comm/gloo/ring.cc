/* ring: implements reduce-scatter, for which Gloo has no usable version.
 *
 * A ring: in step s, rank r sends the running sum of block r-1-s to r+1, and adds its own part to
 * that of block r-2-s, which comes from r-1. After world-1 steps it holds the sum of block r.
 * Blocks are processed in rounds of ROUND_BYTES, rounds in segments: while one segment is added, the
 * next two are in transit.
 */
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <vector>

#include "engine/comm/gloo/shim_int.h"

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
