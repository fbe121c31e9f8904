// The calculator of the sizing page. Its formulas are those of bench/sizing.py, which compares the results.
'use strict';
const COEFFICIENTS = {"viewer_cores_per_gbps": 0.0927, "viewer_kib": 5.1, "edge_miss_gb_per_core_second": 3.86, "origin_gb_per_core_second": 2.76, "storage_requests_per_segment": 1.025, "storage_requests_per_cold_title": 2, "index_mib_per_two_hour_title": 6.8};
const SECONDS_PER_MONTH = 30 * 86400;

/** Returns the edges for these viewers: one of several may be lost. */
function countEdges(input, coresPerViewer) {
  const byNetwork = input.nic_gbps * input.utilisation * 1000 / input.mbps;
  const carrying = Math.ceil(input.viewers / Math.floor(Math.min(byNetwork, input.cores / coresPerViewer)));
  return carrying <= 1 ? 1 : carrying + 1;
}

/** Returns the needs at the peak, and the cost of a month. */
function computeNeeds(input) {
  const c = COEFFICIENTS;
  const gbps = input.viewers * input.mbps / 1000;
  const missed = gbps * (1 - input.hit_ratio);
  const edgeCores = (gbps * c.viewer_cores_per_gbps + missed / 8 / c.edge_miss_gb_per_core_second) / input.utilisation;
  const originCores = missed / 8 / c.origin_gb_per_core_second / input.utilisation;
  const requests = missed * 1e9 / (input.mbps * 1e6 * input.segment_seconds) * c.storage_requests_per_segment;
  const terabytes = missed / 8 * SECONDS_PER_MONTH / 1000;
  const edges = countEdges(input, edgeCores / input.viewers);
  const machines = edges + Math.ceil(originCores / input.cores);
  return {
    edges,
    origins: machines - edges,
    gbps,
    edge_cores: edgeCores,
    edge_memory_gib: input.viewers * c.viewer_kib / 2 ** 20,
    origin_gbps: missed,
    origin_cores: originCores,
    storage_requests_per_s: requests,
    storage_tb_per_month: terabytes,
    index_gib: input.titles * input.hours / 2 * c.index_mib_per_two_hour_title / 1024,
    cost: requests * SECONDS_PER_MONTH * input.mean_share / 1e6 * input.price_per_million
      + terabytes * 1000 * input.mean_share * input.price_per_gb
      + input.library_tb * input.price_per_library_tb + machines * input.price_per_machine,
  };
}

function showNeeds(form) {
  const input = Object.fromEntries([...form.elements].filter(({ name }) => name).map(({ name, valueAsNumber }) => [name, valueAsNumber]));
  const needs = computeNeeds(input);
  for (const output of document.querySelectorAll('output')) {
    const value = needs[output.dataset.need];
    output.textContent = Number.isFinite(value) ? value.toLocaleString('en', { maximumFractionDigits: 2 }) : '–';
  }
}

if (typeof document === 'undefined') {
  module.exports = { computeNeeds };
} else {
  const form = document.querySelector('form');
  form.addEventListener('input', () => showNeeds(form));
  showNeeds(form);
}
