"""Runs a command and prints each GPU's mean power and SM clock over the middle of its longest busy stretch.

  python3 2026-11-22-energy.py LABEL COMMAND      power from NVML's energy counter, read every 50 ms
"""
import ctypes, subprocess, sys, time

nvml = ctypes.CDLL("libnvidia-ml.so.1")
nvml.nvmlInit_v2()
count = ctypes.c_uint()
nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
gpus = []
for ordinal in range(count.value):
    gpus.append(ctypes.c_void_p())
    nvml.nvmlDeviceGetHandleByIndex_v2(ordinal, ctypes.byref(gpus[-1]))
POWER_CAP = 4  # nvmlClocksThrottleReasonSwPowerCap


def sample():
    values = []
    for gpu in gpus:
        millijoules, clock, reasons = ctypes.c_ulonglong(), ctypes.c_uint(), ctypes.c_ulonglong()
        nvml.nvmlDeviceGetTotalEnergyConsumption(gpu, ctypes.byref(millijoules))
        nvml.nvmlDeviceGetClockInfo(gpu, 1, ctypes.byref(clock))
        nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu, ctypes.byref(reasons))
        values.append((millijoules.value / 1e3, clock.value, reasons.value))
    return time.monotonic(), values


label, command = sys.argv[1:]
process = subprocess.Popen(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
samples = []
while process.poll() is None:
    samples.append(sample())
    time.sleep(0.05)
for g in range(len(gpus)):
    watts = [(b[1][g][0] - a[1][g][0]) / (b[0] - a[0]) for a, b in zip(samples, samples[4:])]
    busy = [i for i, w in enumerate(watts) if w > 0.75 * max(watts)]
    stretches = [[busy[0]]]
    for i in busy[1:]:
        if i > stretches[-1][-1] + 8:
            stretches.append([])
        stretches[-1].append(i)
    longest = max(stretches, key=len)
    length = longest[-1] - longest[0]
    first, last = longest[0] + length // 4, longest[-1] - length // 8
    if last > first:
        middle = samples[first:last]
        seconds = samples[last][0] - samples[first][0]
        power = (samples[last][1][g][0] - samples[first][1][g][0]) / seconds
        clock = sum(s[1][g][1] for s in middle) / len(middle)
        capped = sum(1 for s in middle if s[1][g][2] & POWER_CAP) / len(middle)
        print(f"{label} | gpu {g}: {power:.0f} W, SM clock {clock:.0f} MHz, power cap in {100 * capped:.0f}% of "
              f"{len(middle)} samples, {seconds:.1f} s")
print(process.stdout.read())
