"""`/metrics`: Kueue's and HAMi's families under their own names, and kueueweb's own."""
