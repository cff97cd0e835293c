#include "engine/data/mapping.h"
#include "runner/corpus/pairs_int.h"

dt_status dt_pairs_read(dt_pair_tally *out, const dt_pair_file *file,
                        const char *const names[DT_LANGUAGES], const dt_pair_sink *sink,
                        dt_error *err)
{
    dt_mapping text = {0};
    dt_status st = DT_OK;

    switch (file->format) {
    case DT_PAIR_TEXT:
        return dt_pairs_read_lines(out, file, sink, err);
    case DT_PAIR_DATABIN:
        return dt_pairs_read_databin(out, file, sink, err);
    case DT_PAIR_JSONL:
    case DT_PAIR_CSV:
    case DT_PAIR_TSV:
        break;
    }
    DT_TRY(dt_mapping_open(&text, file->paths[0], err));
    st = file->format == DT_PAIR_JSONL ? dt_pairs_read_objects(out, &text, file, names, sink, err)
                                       : dt_pairs_read_table(out, &text, file, names, sink, err);
out:
    dt_mapping_close(&text);
    return st;
}
