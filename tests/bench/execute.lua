-- wrk: POST /execute of /bin/true, and the outcome as one JSON line.
wrk.method = "POST"
wrk.body = '{"command":"/bin/true"}'
wrk.headers["Content-Type"] = "application/json"

function done(summary, latency, requests)
    local e = summary.errors
    io.write(string.format(
        '{"requests":%d,"seconds":%.6f,"p50_us":%.0f,"p99_us":%.0f,"bad":%d}\n',
        summary.requests, summary.duration / 1e6, latency:percentile(50), latency:percentile(99),
        e.connect + e.read + e.write + e.status + e.timeout))
end
