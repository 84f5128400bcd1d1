# SPDX-License-Identifier: Apache-2.0
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Callable, Dict, List, Literal, Mapping, Optional, Sequence, Union, overload

import pandas

__all__ = ["Recommendation", "ReplayReport", "TelemetryOptions", "estimate", "predict", "recommend",
           "run_synthetic_trace_replay", "run_trace_replay", "__version__"]
__version__: str
_Path = Union[str, PathLike[str]]
_Object = Union[str, Mapping[str, Any]]
_Router = Literal["round_robin", "kv_router", "random", "least_loaded", "power_of_two"]
_Format = Literal["mooncake", "mooncake-delta", "agentic_mooncake", "weka",
                  "applied_compute_agentic", "dynamo", "azure", "burstgpt", "bailian", "lengths"]
_Prompts = Literal["fixed", "cumulative"]
_Basis = Literal["auto", "absolute", "relative"]

@dataclass(frozen=True)
class TelemetryOptions:
    sample_interval_ms: float = ...
    capture_in_memory: Optional[bool] = ...
    callback: Optional[Callable[[Dict[str, Any]], object]] = ...
    jsonl_path: Optional[_Path] = ...
    @property
    def captures(self) -> bool: ...

class ReplayReport:
    @property
    def summary(self) -> Dict[str, Any]: ...
    @property
    def per_request(self) -> Optional[List[Dict[str, Any]]]: ...
    @property
    def coverage(self) -> Dict[str, Any]: ...
    @property
    def configuration(self) -> Dict[str, Any]: ...
    @property
    def telemetry(self) -> Optional[Dict[str, Any]]: ...
    planner: None
    def to_dict(self) -> Dict[str, Any]: ...
    def table(self) -> str: ...
    def save(self, path: _Path) -> None: ...
    def save_requests(self, path: _Path) -> None: ...
    def frame(self) -> pandas.DataFrame: ...
    def telemetry_frame(self) -> pandas.DataFrame: ...
    def summary_frame(self) -> pandas.DataFrame: ...

@overload
def run_trace_replay(
    trace_files: Union[_Path, Sequence[_Path]], *,
    extra_engine_args: Optional[_Object] = None, prefill_engine_args: Optional[_Object] = None,
    decode_engine_args: Optional[_Object] = None, router_config: Optional[_Object] = None,
    num_workers: Optional[int] = None, num_prefill_workers: Optional[int] = None,
    num_decode_workers: Optional[int] = None, replay_concurrency: Optional[int] = None,
    agentic_lanes: Optional[int] = None, replay_mode: Literal["offline"] = "offline",
    router_mode: _Router = "round_robin", router_seed: Optional[int] = None,
    arrival_speedup_ratio: float = 1.0, trace_block_size: Optional[int] = None,
    trace_format: _Format = "mooncake", trace_shared_prefix_ratio: float = 0.0,
    trace_num_prefix_groups: int = 0, model_name: Optional[str] = None,
    router_policy_config: Optional[_Path] = None, report_jsonl_path: Optional[_Path] = None,
    max_sim_time_ms: Optional[float] = None, sla_ttft_ms: Optional[float] = None,
    sla_itl_ms: Optional[float] = None, sla_e2e_ms: Optional[float] = None,
    planner_config: None = None, capture_per_request: bool = False,
    capture_routing: bool = False, telemetry_options: Optional[TelemetryOptions] = None,
    kv_event_lag_ms: Optional[float] = None, execution_model: Optional[str] = None,
    weka_nested_timestamp_basis: Optional[_Basis] = None,
    placements: Optional[_Path] = None) -> ReplayReport: ...
@overload
def run_trace_replay(
    trace_files: Union[_Path, Sequence[_Path]], *,
    extra_engine_args: Optional[_Object] = None, prefill_engine_args: Optional[_Object] = None,
    decode_engine_args: Optional[_Object] = None, router_config: Optional[_Object] = None,
    num_workers: Optional[int] = None, num_prefill_workers: Optional[int] = None,
    num_decode_workers: Optional[int] = None, replay_concurrency: Optional[int] = None,
    agentic_lanes: Optional[int] = None, replay_mode: Literal["online"],
    router_mode: _Router = "round_robin", router_seed: Optional[int] = None,
    arrival_speedup_ratio: float = 1.0, trace_block_size: Optional[int] = None,
    trace_format: _Format = "mooncake", trace_shared_prefix_ratio: float = 0.0,
    trace_num_prefix_groups: int = 0, model_name: Optional[str] = None,
    router_policy_config: Optional[_Path] = None, report_jsonl_path: Optional[_Path] = None,
    max_sim_time_ms: Optional[float] = None, sla_ttft_ms: Optional[float] = None,
    sla_itl_ms: Optional[float] = None, sla_e2e_ms: Optional[float] = None,
    planner_config: None = None, capture_per_request: Literal[False] = False,
    capture_routing: bool = False, telemetry_options: None = None,
    kv_event_lag_ms: Optional[float] = None, execution_model: Optional[str] = None,
    weka_nested_timestamp_basis: Optional[_Basis] = None,
    placements: Optional[_Path] = None) -> Dict[str, Any]: ...

@overload
def run_synthetic_trace_replay(
    input_tokens: int, output_tokens: int, request_count: int, *,
    extra_engine_args: Optional[_Object] = None, prefill_engine_args: Optional[_Object] = None,
    decode_engine_args: Optional[_Object] = None, router_config: Optional[_Object] = None,
    num_workers: Optional[int] = None, num_prefill_workers: Optional[int] = None,
    num_decode_workers: Optional[int] = None, replay_concurrency: Optional[int] = None,
    replay_mode: Literal["offline"] = "offline", router_mode: _Router = "round_robin",
    router_seed: Optional[int] = None, request_rate: Optional[float] = None,
    arrival_interval_ms: Optional[float] = None, arrival_seed: int = 42,
    arrival_speedup_ratio: float = 1.0, turns_per_session: int = 1,
    shared_prefix_ratio: float = 0.0, num_prefix_groups: int = 0,
    inter_turn_delay_ms: float = 0.0, session_prompts: Optional[_Prompts] = None,
    model_name: Optional[str] = None, router_policy_config: Optional[_Path] = None,
    sla_ttft_ms: Optional[float] = None, sla_itl_ms: Optional[float] = None,
    sla_e2e_ms: Optional[float] = None, planner_config: None = None,
    capture_per_request: bool = False, capture_routing: bool = False,
    telemetry_options: Optional[TelemetryOptions] = None,
    kv_event_lag_ms: Optional[float] = None,
    placements: Optional[_Path] = None) -> ReplayReport: ...
@overload
def run_synthetic_trace_replay(
    input_tokens: int, output_tokens: int, request_count: int, *,
    extra_engine_args: Optional[_Object] = None, prefill_engine_args: Optional[_Object] = None,
    decode_engine_args: Optional[_Object] = None, router_config: Optional[_Object] = None,
    num_workers: Optional[int] = None, num_prefill_workers: Optional[int] = None,
    num_decode_workers: Optional[int] = None, replay_concurrency: Optional[int] = None,
    replay_mode: Literal["online"], router_mode: _Router = "round_robin",
    router_seed: Optional[int] = None, request_rate: Optional[float] = None,
    arrival_interval_ms: Optional[float] = None, arrival_seed: int = 42,
    arrival_speedup_ratio: float = 1.0, turns_per_session: int = 1,
    shared_prefix_ratio: float = 0.0, num_prefix_groups: int = 0,
    inter_turn_delay_ms: float = 0.0, session_prompts: Optional[_Prompts] = None,
    model_name: Optional[str] = None, router_policy_config: Optional[_Path] = None,
    sla_ttft_ms: Optional[float] = None, sla_itl_ms: Optional[float] = None,
    sla_e2e_ms: Optional[float] = None, planner_config: None = None,
    capture_per_request: Literal[False] = False, capture_routing: bool = False,
    telemetry_options: None = None,
    kv_event_lag_ms: Optional[float] = None,
    placements: Optional[_Path] = None) -> Dict[str, Any]: ...

def predict(document: Union[_Path, Mapping[str, Any]], *,
            overrides: Union[Mapping[str, Any], Sequence[str], None] = None,
            stack: Literal["engine", "dynamo"] = "engine",
            capture_per_request: bool = False) -> ReplayReport: ...

def estimate(phase: Literal["prefill", "decode", "capacity", "operations"], *, model: _Path,
             system: str, backend: str, backend_version: Optional[str] = None, batch: int = 1,
             isl: Optional[int] = None, prefix: int = 0, ctx: Optional[int] = None,
             block_size: Optional[int] = None, max_num_tokens: Optional[int] = None,
             max_batch_size: Optional[int] = None, memory_fraction: Optional[float] = None,
             cuda_graph_reserved_bytes: Optional[int] = None,
             perfdata: Union[_Path, Sequence[_Path]] = (), tp_size: Optional[int] = None,
             pp_size: Optional[int] = None, attention_dp_size: Optional[int] = None,
             moe_tp_size: Optional[int] = None, moe_ep_size: Optional[int] = None,
             nextn: Optional[int] = None, gemm_quant_mode: Optional[str] = None,
             moe_quant_mode: Optional[str] = None, fmha_quant_mode: Optional[str] = None,
             kvcache_quant_mode: Optional[str] = None,
             comm_quant_mode: Optional[str] = None) -> Dict[str, Any]: ...

class Recommendation:
    output_dir: Path
    def __init__(self, output_dir: _Path, table: str = "") -> None: ...
    @property
    def candidates(self) -> List[Dict[str, Any]]: ...
    @property
    def counts(self) -> Dict[str, int]: ...
    @property
    def ranking(self) -> List[Dict[str, Any]]: ...
    @property
    def pareto_front(self) -> List[Dict[str, Any]]: ...
    @property
    def paths(self) -> List[Path]: ...
    def to_dict(self) -> Dict[str, Any]: ...
    def table(self) -> str: ...
    def frame(self) -> pandas.DataFrame: ...

def recommend(document: Union[_Path, Mapping[str, Any]], *,
              overrides: Union[Mapping[str, Any], Sequence[str], None] = None,
              stack: Literal["engine", "dynamo"] = "engine",
              output_dir: _Path = "./aisimulate-output", overwrite: bool = False,
              resume: bool = False, top: int = 20, report_html: Optional[_Path] = None,
              executor: Literal["local", "ray"] = "local", ray_address: Optional[str] = None,
              progress: Optional[Callable[[int, int], object]] = None) -> Recommendation: ...
