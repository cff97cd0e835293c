/* site: what a server serves, and who may see it; its threads share it. */
#ifndef DT_WEB_SITE_H
#define DT_WEB_SITE_H

#include "web/admission.h"
#include "web/command.h"
#include "web/listen.h"
#include "web/live.h"
#include "web/stores.h"

typedef struct dt_web_site {
    const char *folder; /* of the store: runs/ID/ lies below it */
    const char *token;  /* who knows it may see more than what is for everybody; NULL: all may */
    dt_web_listener listener;
    dt_web_stores stores;
    dt_web_admission admission;
    dt_web_live live;
    dt_web_commands commands;
} dt_web_site;

#endif
