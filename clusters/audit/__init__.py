"""The auditor of the accounting: quota, devices, pods and the cluster must agree."""
