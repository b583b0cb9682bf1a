"""PostgreSQL and Valkey as child processes, for the demo and the tests: real servers, on unix sockets."""
