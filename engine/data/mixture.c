#include "engine/data/mixture.h"

#include <string.h>

#include "engine/data/data_int.h"

void dt_mixture_init(dt_mixture *out, const dt_recipe *recipe)
{
    *out = (dt_mixture){.count = recipe->data.mixture.count};
    for (int64_t i = 0; i < out->count; i++)
        out->parts[i] = (dt_data_part){.name = dt_recipe_part(recipe, i)->name,
                                       .share = dt_recipe_part_share(recipe, i)};
}

/* Number of possible offsets of an epoch's first sample. */
static int64_t shifts_of(int64_t count, int64_t tokens, int64_t ahead)
{
    int64_t spare = count + 1 - ahead - tokens;

    return spare < tokens ? spare : tokens;
}

int64_t dt_mixture_part_samples(int64_t count, int64_t tokens, int64_t ahead)
{
    return (count + 1 - ahead - shifts_of(count, tokens, ahead)) / tokens;
}

/* Gives what rounding down left over to the parts with the largest remainders. */
static void give_rest(dt_mixture *mixture, double rest[], int64_t left)
{
    for (; left > 0; left--) {
        int64_t best = 0;

        for (int64_t i = 1; i < mixture->count; i++)
            if (rest[i] > rest[best])
                best = i;
        mixture->parts[best].quota++;
        rest[best] = -1;
    }
}

dt_status dt_mixture_set_quotas(dt_mixture *mixture, dt_error *err)
{
    double rest[DT_MIXTURE_MOST];
    int64_t left;

    mixture->samples = mixture->most = 0;
    for (int64_t i = 0; i < mixture->count; i++)
        mixture->samples += mixture->parts[i].samples;
    left = mixture->samples;
    for (int64_t i = 0; i < mixture->count; i++) {
        dt_data_part *part = &mixture->parts[i];
        double exact = part->share * (double)mixture->samples;

        part->quota = (int64_t)exact;
        rest[i] = exact - (double)part->quota;
        left -= part->quota;
    }
    give_rest(mixture, rest, left);
    for (int64_t i = 0; i < mixture->count; i++) {
        const dt_data_part *part = &mixture->parts[i];

        if (part->quota == 0)
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "data.mixture: the weight of '%s' is %.3g of the sum, less than one of "
                           "the %lld sequences of an epoch: raise its weight, or leave it out",
                           part->name, part->share, (long long)mixture->samples);
    }
    return DT_OK;
}

dt_status dt_mixture_divide(dt_mixture *mixture, int64_t tokens, int64_t ahead, dt_error *err)
{
    dt_status st;

    mixture->tokens = tokens;
    mixture->ahead = ahead;
    for (int64_t i = 0; i < mixture->count; i++) {
        dt_data_part *part = &mixture->parts[i];

        part->samples = dt_mixture_part_samples(part->count, tokens, ahead);
    }
    st = dt_mixture_set_quotas(mixture, err);
    for (int64_t i = 0; i < mixture->count; i++) {
        int64_t most = (mixture->parts[i].count - ahead) / tokens;

        mixture->most = most > mixture->most ? most : mixture->most;
    }
    return st;
}

static dt_philox_key key_of(uint64_t seed, int64_t part, int64_t epoch, dt_draw_kind draw)
{
    dt_philox_key key = dt_shuffle_key(seed, epoch, draw);

    key.data_rank = (uint32_t)part + 1; /* 0: data without parts */
    return key;
}

/* Writes the next samples of a part in an epoch of the mixture, its quota of them. */
static void pick(int64_t *picks, int64_t *scratch, const dt_mixture *mixture, int64_t index,
                 uint64_t seed, int64_t epoch)
{
    const dt_data_part *part = &mixture->parts[index];
    int64_t tokens = mixture->tokens, ahead = mixture->ahead;
    int64_t turn = epoch * part->quota, own, shift, shifts = shifts_of(part->count, tokens, ahead);

    for (int64_t i = 0; i < part->quota; i++, turn++) {
        if (i == 0 || turn % part->samples == 0) {
            dt_philox_key order, from;

            own = turn / part->samples;
            order = key_of(seed, index, own, DT_DRAW_ORDER);
            from = key_of(seed, index, own, DT_DRAW_SHIFT);
            shift = (int64_t)(dt_shuffle_draw(&from, 0) % (uint64_t)shifts);
            dt_shuffle(scratch, (part->count - ahead - shift) / tokens, &order);
        }
        picks[i] = part->first + shift + scratch[turn % part->samples] * tokens;
    }
}

/* The part of the next sample: smooth weighted round robin, in which each part gains its quota in every turn and the one
 * with the most pays for all. After an epoch all are at 0 again, and each was chosen as often as its quota. */
static int64_t choose(const dt_mixture *mixture, int64_t credit[])
{
    int64_t chosen = 0;

    for (int64_t i = 0; i < mixture->count; i++) {
        credit[i] += mixture->parts[i].quota;
        if (credit[i] > credit[chosen])
            chosen = i;
    }
    credit[chosen] -= mixture->samples;
    return chosen;
}

void dt_mixture_order(int64_t *order, int64_t *picks, int64_t *scratch, const dt_mixture *mixture,
                      uint64_t seed, int64_t epoch)
{
    int64_t next[DT_MIXTURE_MOST], credit[DT_MIXTURE_MOST] = {0}, at = 0;

    for (int64_t i = 0; i < mixture->count; i++) {
        pick(picks + at, scratch, mixture, i, seed, epoch);
        next[i] = at;
        at += mixture->parts[i].quota;
    }
    for (int64_t s = 0; s < mixture->samples; s++)
        order[s] = picks[next[choose(mixture, credit)]++];
}

int64_t dt_mixture_end(const dt_mixture *mixture, int64_t token)
{
    int64_t part = 0;

    while (token >= mixture->parts[part].token_end)
        part++;
    return mixture->parts[part].token_end;
}

/* --- the files of parts */

dt_status dt_mixture_files(int64_t counts[DT_MIXTURE_MOST], const dt_recipe *recipe,
                           dt_tokens_kind kind, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; i < recipe->data.mixture.count; i++) {
        dt_string_list patterns = dt_recipe_part_files(recipe, i);
        dt_data_files files;

        DT_TRY(dt_data_files_find(&files, &patterns, kind, "data.mixture", arena, err));
        counts[i] = files.count;
    }
out:
    return st;
}

dt_recipe dt_mixture_recipe_of(const dt_recipe *recipe, int64_t part)
{
    dt_recipe own = *recipe;

    own.data.train = dt_recipe_part_files(recipe, part);
    own.data.mixture.count = 0;
    return own;
}

dt_status dt_mixture_in_part(dt_status st, const dt_recipe *recipe, int64_t part, dt_error *err)
{
    if (st != DT_OK)
        dt_error_prefix(err, "data.mixture '%s'", dt_recipe_part(recipe, part)->name);
    return st;
}
