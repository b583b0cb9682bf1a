"""What the notifications do: rules, gathering, delivery."""
