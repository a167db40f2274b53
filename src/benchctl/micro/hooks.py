"""The hooks of microbenchmarks that the core calls."""

imported = "benchctl.micro.results:imported"
micro = "benchctl.micro.conduct"
micro_source = "benchctl.micro.jmh:read_source"
