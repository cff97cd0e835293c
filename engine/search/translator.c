#include "engine/search/translator.h"

#include "base/banned.h"

void dt_translator_config(dt_model_config *config, int64_t beams)
{
    config->incremental = true;
    config->batch = beams;
}

int64_t dt_translator_ids(const dt_model_config *config)
{
    return config->decoder.context > config->batch ? config->decoder.context : config->batch;
}

dt_translator dt_translator_of(dt_model *model, const dt_tensor *ids, const dt_sides *sides,
                               int64_t beams, double length_penalty)
{
    return (dt_translator){.model = model,
                           .ids = *ids,
                           .target = sides->target,
                           .search = {.beams = beams,
                                      .vocab = model->config.decoder.vocab,
                                      .most = model->config.decoder.context,
                                      .length_penalty = length_penalty,
                                      .end = sides->target->end,
                                      .pad = sides->target->pad}};
}

static dt_status copy_ids(dt_translator *t, dt_tensor *out, const int32_t *ids, int64_t rows,
                          int64_t columns, dt_error *err)
{
    dt_device *device = t->model->device;

    *out = dt_tensor_2d(t->ids.data, DT_I32, rows, columns);
    return device->copy_in(device, out->data, ids, (size_t)(rows * columns) * sizeof(*ids), err);
}

static dt_status next(void *self, const int32_t *newest, const int32_t *parents, int64_t versions,
                      float *logits, dt_error *err)
{
    dt_translator *t = self;
    dt_tensor previous;
    dt_status st = DT_OK;

    DT_TRY(copy_ids(t, &previous, newest, versions, 1, err));
    DT_TRY(dt_model_translate_next(t->model, &previous, parents, logits, err));
out:
    return st;
}

dt_status dt_translator_run(dt_beam_result *out, dt_translator *t, const int32_t *source,
                            int64_t count, dt_error *err)
{
    dt_tensor sentence;
    dt_status st = DT_OK;

    DT_TRY(copy_ids(t, &sentence, source, 1, count, err));
    DT_TRY(dt_model_translate(t->model, &sentence, err));
    DT_TRY(dt_beam_search(out, &t->search, next, t, err));
out:
    return st;
}

void dt_translator_line(dt_strbuf *out, const dt_side *side, const int32_t *ids, int64_t count)
{
    dt_strbuf_reset(out);
    for (int64_t i = 0; i < count; i++)
        dt_side_decode(out, side, ids[i]);
    for (size_t i = 0; i < out->length; i++)
        if (out->data[i] == '\n' || out->data[i] == '\r')
            out->data[i] = ' ';
    while (out->length > 0 && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
}
