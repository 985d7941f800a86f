// The families of tasks are defined in their own folders: language_family(), masked_family(), ...
#pragma once

#include "headshare/tasks/family.h"

namespace headshare {

#define HS_FAMILY(name) const TaskFamily& name##_family();
#include "headshare/tasks/families.inc"
#undef HS_FAMILY

}  // namespace headshare
