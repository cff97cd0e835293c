/* site: holds the state that the threads of a server share. */
#ifndef DT_WEB_SITE_H
#define DT_WEB_SITE_H

#include "web/admission.h"
#include "web/command.h"
#include "web/listen.h"
#include "web/live.h"
#include "web/stores.h"

typedef struct dt_web_site {
    const char *folder; /* of the store: runs/ID/ is in it */
    const char *token;  /* required for all but public routes; NULL: not required */
    dt_web_listener listener;
    dt_web_stores stores;
    dt_web_admission admission;
    dt_web_live live;
    dt_web_commands commands;
} dt_web_site;

#endif
