/* formats: defines the table of export formats. */
#include <stddef.h>

#include "runner/export/export.h"

#define ADDRESS(name) &dt_export_##name,
const dt_export_format *const dt_export_formats[] = {DT_EXPORT_FORMATS(ADDRESS) NULL};

#define NAME(name) #name,
const char *const dt_export_names[] = {DT_EXPORT_FORMATS(NAME) NULL};
