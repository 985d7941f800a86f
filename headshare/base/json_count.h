// json_count has moved; this goes once nobody includes it.
#pragma once

#include "headshare/base/json_input.h"
