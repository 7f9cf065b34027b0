"""Warehouses: shells of sheet and steel, racks and their goods, machines, what hangs under roofs and stands on floors."""
