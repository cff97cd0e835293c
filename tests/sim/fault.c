/* fault: what goes wrong, drawn. */
#define _GNU_SOURCE
#include "tests/sim/sim.h"

#include "base/banned.h"

void sim_faults_draw(sim_profile profile) {}

void sim_faults_heal(void) {}
