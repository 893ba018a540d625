// The Prometheus operator's resources, as its module ships them; no program of it is built.
module heddle.dev/tests/cluster/monitoring_crds

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
