#pragma once

#include <sys/types.h>

#include <chrono>

namespace heddle::nodeagent {

// What both kinds of children need, the driver's and a command's: to be waited for with a limit.

// A descriptor that becomes readable when the process is gone; -1 where a kernel or a container's filter refuses it.
int OpenProcess(pid_t process);

// Lets a timerfd become readable once, after the limit; a limit of zero is at once. False = it cannot.
bool Arm(int timer, std::chrono::milliseconds limit);

}  // namespace heddle::nodeagent
