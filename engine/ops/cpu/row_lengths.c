/* row_lengths: computes the length of each row of tokens without its padding. */
#include "engine/ops/cpu/ops_int.h"

dt_status DT_CPU_NAME(row_lengths)(dt_device *device, dt_tensor *lengths, const dt_tensor *tokens,
                                   int32_t pad, dt_error *err)
{
    int64_t rows = tokens->dim[0], columns = tokens->dim[1];
    const int32_t *token = tokens->data;
    int32_t *out = lengths->data;

    DT_ASSERT(tokens->dtype == DT_I32 && tokens->ndim == 2 && lengths->dtype == DT_I32 &&
              dt_tensor_elems(lengths) == rows);
    for (int64_t i = 0; i < rows; i++) {
        int64_t length = columns;

        while (length > 1 && token[i * columns + length - 1] == pad)
            length--;
        out[i] = (int32_t)length;
    }
    return DT_OK;
}
