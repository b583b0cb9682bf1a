"""Notifications: rules, gathering, delivery."""
