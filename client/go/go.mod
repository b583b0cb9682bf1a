module kueueweb.io/client

go 1.24
