// Called at the begin and the end of every execution of a delegate, however it ends. Names are
// ExecuTorch's; an application may define its own.
#pragma once

extern "C" {
void EthosUBackend_execute_begin();
void EthosUBackend_execute_end();
}
