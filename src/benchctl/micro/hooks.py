"""The hooks of microbenchmarks that the core calls."""

fork_runner = "benchctl.micro.conduct:MicroRunner"
imported = "benchctl.micro.results:imported"
micro_caveats = "benchctl.micro.conduct:micro_caveats"
micro_source = "benchctl.micro.jmh:read_source"
micro_subjects = "benchctl.micro.conduct:prepare_micro"
