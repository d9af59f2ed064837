#pragma once
#define LOG_PANIC()
