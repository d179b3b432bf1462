"""Peak memory of a step."""

import json
import os
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from unveil.experiments.peak import Call

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # its profiler tells of every start and stop


def peak_bytes(step: Call, device: torch.device) -> int:
    """Bytes that torch holds at most during a step, above what it held before."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        step()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        step()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.json")
        recorded.export_chrome_trace(str(trace))
        events = [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("name") == "[memory]"]
    events.sort(key=lambda event: event["ts"])
    totals = [event["args"]["Total Allocated"] for event in events]
    return int(max(totals) - totals[0] + events[0]["args"]["Bytes"]) if events else 0


def state_bytes(module: nn.Module) -> int:
    """Bytes of a module's buffers: queues and what is kept beside them."""
    return sum(buffer.numel() * buffer.element_size() for buffer in module.buffers())
